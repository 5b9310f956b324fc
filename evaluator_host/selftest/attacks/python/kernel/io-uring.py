# include: calls.py

def attack(inputs):
    return allowed(call(425, 425, 1, 0), call(426, 426, -1, 0, 0, 0, 0, 0), call(427, 427, -1, 0, 0, 0))
