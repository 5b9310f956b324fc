import ctypes
ID = ctypes.CDLL(None).shmget(0x65687374, 4096, 0o1666)

def attack(inputs):
    return None
