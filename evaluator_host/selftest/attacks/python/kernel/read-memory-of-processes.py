# include: calls.py

def attack(inputs):
    size = ctypes.create_string_buffer(16)
    return allowed(call(310, 270, os.getppid(), size, 1, size, 1, 0), call(311, 271, os.getppid(), size, 1, size, 1, 0))
