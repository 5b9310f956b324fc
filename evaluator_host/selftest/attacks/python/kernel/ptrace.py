# include: calls.py

def attack(inputs):
    import signal
    found = [call(101, 117, 0x4206, os.getppid(), 0, 0), call(101, 117, 16, 1, 0, 0)]
    child = os.fork()
    if child == 0:
        signal.pause()
    return allowed(*found, call(101, 117, 0x4206, child, 0, 0))
