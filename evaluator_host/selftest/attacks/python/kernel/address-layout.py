# include: calls.py

def attack(inputs):
    return allowed(call(135, 92, 0x0040000), call(135, 92, 0x0400000))
