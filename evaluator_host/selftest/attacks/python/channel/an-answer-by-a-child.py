# include: frames.py

import time

def attack(inputs):
    if os.fork() == 0:
        time.sleep(0.2)
        write_to_all(ANSWER)
        time.sleep(60)
    os._exit(0)
