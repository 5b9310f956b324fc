# include: calls.py

def attack(inputs):
    return allowed(*(call(number, 470) for number in (0x40000000 + 39, 0x40000000 + 101, 470, 600)))
