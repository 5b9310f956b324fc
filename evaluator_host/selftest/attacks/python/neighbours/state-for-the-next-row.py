import os, sys
STATE = []

def attack(inputs):
    STATE.append(1)
    sys.modules["state"] = 1
    os.environ["STATE"] = os.getcwd()
    os.umask(0o777)
    sys.setrecursionlimit(70)

def left(inputs):
    return STATE or "state" in sys.modules or "STATE" in os.environ or os.umask(0o22) != 0o22
