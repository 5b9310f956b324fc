# include: calls.py

def attack(inputs):
    import fcntl
    try:
        fcntl.ioctl(0, 0x5412, b"x")
    except PermissionError:
        return None
    except OSError as error:
        return errno.errorcode[error.errno]
    return "typed"
