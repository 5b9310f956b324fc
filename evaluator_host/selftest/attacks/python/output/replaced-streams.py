import os, sys

class Stream:
    def __getattr__(self, name):
        raise SystemExit(7)

def attack(inputs):
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    sys.stdout = sys.__stdout__ = sys.stderr = Stream()
