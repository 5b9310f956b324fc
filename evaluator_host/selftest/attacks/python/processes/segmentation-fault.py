import ctypes
def attack(inputs): ctypes.string_at(0)
