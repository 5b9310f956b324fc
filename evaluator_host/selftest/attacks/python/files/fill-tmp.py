# include: fill.py
def attack(inputs): return fill("/tmp", 40)
