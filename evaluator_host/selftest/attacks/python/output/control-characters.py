def attack(inputs):
    print("\x00\x01\x1b" * (1 << 16), flush=True)
