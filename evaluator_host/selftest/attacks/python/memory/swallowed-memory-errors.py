def attack(inputs):
    held, refused = [], 0
    while len(held) < 300 and refused < 200:
        try:
            held.append(bytearray(1 << 20))
        except MemoryError:
            refused += 1
    return len(held) > 128 and f"{len(held)} MB"
