import os, time

def attack(inputs):
    os.kill(-1, 9)
    time.sleep(0.2)
    os._exit(1)
