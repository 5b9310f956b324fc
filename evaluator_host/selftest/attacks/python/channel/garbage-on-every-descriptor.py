# include: frames.py

import time

def attack(inputs):
    write_to_all(os.urandom(8) * 512)
    time.sleep(2)
