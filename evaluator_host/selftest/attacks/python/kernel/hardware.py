# include: calls.py

def attack(inputs):
    return allowed(call(172, None, 3), call(173, None, 0, 1, 1), call(154, None, 1, 0, 0))
