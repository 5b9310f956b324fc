def attack(inputs): return len(bytearray(300 << 20))
