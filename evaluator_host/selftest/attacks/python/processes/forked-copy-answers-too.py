import os, time

def attack(inputs):
    if os.fork() == 0:
        return "the copy"
    time.sleep(0.1)
    return None
