# include: calls.py

def attack(inputs):
    handle = ctypes.create_string_buffer(136)
    return allowed(call(303, 264, -100, b"/", handle, handle, 0), call(304, 265, -100, handle, 0))
