import os, time

def attack(inputs):
    for _ in range(100):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    return "100 processes"
