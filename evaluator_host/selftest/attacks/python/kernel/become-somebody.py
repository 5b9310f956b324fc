# include: calls.py

def attack(inputs):
    found = []
    for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([0]),
                   lambda: os.setreuid(1, 1)):
        try:
            change()
            found.append("changed")
        except OSError:
            pass
    return found
