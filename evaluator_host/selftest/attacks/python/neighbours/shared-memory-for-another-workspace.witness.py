import ctypes

def attack(inputs):
    libc = ctypes.CDLL(None)
    found = libc.shmget(0x65687374, 4096, 0o666)
    if found == -1:
        return None
    libc.shmctl(found, 0, None)
    return "shared memory of another workspace"
