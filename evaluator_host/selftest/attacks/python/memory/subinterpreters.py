try:
    import _interpreters as own
except ImportError:  # until Python 3.12
    import _xxsubinterpreters as own


def attack(inputs):
    made = []
    while len(made) < 100:
        made.append(own.create())
    return len(made)
