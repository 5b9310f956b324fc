import os, sys, time

def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        while True:
            os.write(1, b"a row of mine said so")
            time.sleep(0.001)
    sys.stdout.write("not flushed")
    time.sleep(0.05)
