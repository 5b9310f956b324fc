import os

def attack(inputs):
    return [name for folder in ("/tmp", "/dev/shm") for name in os.listdir(folder) if name.startswith("eh")]
