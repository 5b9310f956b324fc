import fcntl, os

def attack(inputs):
    for fd in (1, 2):
        os.set_blocking(fd, False)
        try:
            fcntl.fcntl(fd, 1031, 4096)  # F_SETPIPE_SZ
        except OSError:
            pass

def left(inputs):
    return not os.get_blocking(1)
