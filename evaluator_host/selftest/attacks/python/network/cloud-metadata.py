# include: reach.py

def attack(inputs):
    return reach(("169.254.169.254", 80)) or reach(("100.100.100.200", 80))
