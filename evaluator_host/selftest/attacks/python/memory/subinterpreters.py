try:
    import _interpreters as own
except ImportError:  # the module's name until Python 3.12
    import _xxsubinterpreters as own


def attack(inputs):
    made = []
    try:
        while len(made) < 400:
            made.append(own.create())
    except Exception:  # no memory for another interpreter; the type of the exception depends on the Python
        return 0 if made else 1
    return len(made)
