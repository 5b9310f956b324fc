# include: calls.py

def attack(inputs):
    return allowed(
        call(248, 217, b"user", inputs["mark"].encode(), b"secret", 6, -4),
        call(250, 219, 0, -4, 0), call(249, 218, b"user", b"x", 0, -4),
    )
