# include: calls.py

def attack(inputs):
    own = os.pidfd_open(os.getpid())
    return allowed(call(438, 438, own, 1, 0), call(312, 272, os.getpid(), os.getpid(), 0, 0, 0))
