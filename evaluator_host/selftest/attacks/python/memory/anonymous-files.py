import os

def attack(inputs):
    try:
        return os.memfd_create("hidden") and "memory that belongs to no process and no folder"
    except OSError:
        return None
