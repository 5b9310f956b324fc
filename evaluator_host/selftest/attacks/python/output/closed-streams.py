import os, sys

def attack(inputs):
    sys.stdout.close()
    sys.stderr.close()
    os.close(1)
    os.close(2)
