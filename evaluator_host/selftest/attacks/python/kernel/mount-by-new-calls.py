# include: calls.py

def attack(inputs):
    return allowed(call(430, 430, b"tmpfs", 0), call(428, 428, -100, b"/", 1), call(442, 442, -1, b"", 0, 0, 0))
