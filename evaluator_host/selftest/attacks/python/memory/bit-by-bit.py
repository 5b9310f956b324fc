def attack(inputs):
    held = []
    while len(held) < 4800:
        held.append("x" * (1 << 16))
    return len(held)
