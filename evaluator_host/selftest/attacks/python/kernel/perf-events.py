# include: calls.py

def attack(inputs):
    return allowed(call(298, 241, 0, 0, -1, -1, 0))
