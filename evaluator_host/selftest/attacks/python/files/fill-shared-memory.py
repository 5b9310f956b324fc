# include: fill.py
def attack(inputs): return fill("/dev/shm", 40)
