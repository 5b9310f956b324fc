import os
def attack(inputs): os.kill(os.getpid(), 19)
