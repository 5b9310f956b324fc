import sys
def attack(inputs): sys.exit(0)
