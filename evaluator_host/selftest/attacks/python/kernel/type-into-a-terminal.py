# include: calls.py

def attack(inputs):
    import fcntl
    for request, given in ((0x5412, b"x"), (0x541C, b"\x03\0\0\0")):
        try:
            fcntl.ioctl(0, request, given)
        except PermissionError:
            continue
        except OSError as error:
            return errno.errorcode[error.errno]
        return "typed"
    return None
