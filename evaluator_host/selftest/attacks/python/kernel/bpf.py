# include: calls.py

def attack(inputs):
    return allowed(call(321, 280, 0, 0, 0), call(321, 280, 5, 0, 0))
