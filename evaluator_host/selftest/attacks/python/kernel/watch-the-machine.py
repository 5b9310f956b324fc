# include: calls.py

def attack(inputs):
    return allowed(call(300, 262, 0x200, 0), call(103, 116, 3, 0, 0))
