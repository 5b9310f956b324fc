import os, time

def attack(inputs):
    os.closerange(3, 1024)
    time.sleep(2)
