import os

def attack(inputs):
    try:
        return os.memfd_create("hidden") and "memory that is in no process and no folder"
    except OSError:
        return None
