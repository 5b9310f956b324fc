import os
def attack(inputs): os.abort()
