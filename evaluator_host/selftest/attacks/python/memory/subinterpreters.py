try:
    import _interpreters as own
except ImportError:  # the module's name until Python 3.12
    import _xxsubinterpreters as own


def attack(inputs):
    made = []
    try:
        while len(made) < 400:
            made.append(own.create())
    except Exception:  # of another type in each Python: there is no memory for another one
        return 0 if made else 1
    return len(made)
