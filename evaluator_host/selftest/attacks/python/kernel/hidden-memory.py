# include: calls.py

def attack(inputs):
    return allowed(call(447, 447, 0), call(319, 279, b'x', 0))
