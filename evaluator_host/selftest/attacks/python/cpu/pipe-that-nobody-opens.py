import os
def attack(inputs):
    os.mkfifo('f')
    return open('f').read()
