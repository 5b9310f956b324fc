# include: interpreters.py
KEPT = []

def attack(inputs):
    KEPT.append(own.create())

def left(inputs):
    return len(own.list_all()) > 1
