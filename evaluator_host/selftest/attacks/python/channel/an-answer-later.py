# include: frames.py

import time

def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        while True:
            write_to_all(ANSWER)
            time.sleep(0.005)

def left(inputs):
    time.sleep(0.1)  # waits so that the old answer comes first
