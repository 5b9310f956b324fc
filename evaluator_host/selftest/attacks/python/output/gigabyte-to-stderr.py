import os

def attack(inputs):
    block = b"x" * (1 << 20)
    for _ in range(1024):
        os.write(2, block)
