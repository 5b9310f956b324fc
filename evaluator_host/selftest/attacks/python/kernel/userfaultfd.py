# include: calls.py

def attack(inputs):
    return allowed(call(323, 282, 1))
