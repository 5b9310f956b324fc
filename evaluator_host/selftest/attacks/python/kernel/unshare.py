# include: calls.py

def attack(inputs):
    found = []
    for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000):
        pid = os.fork()
        if pid == 0:
            os._exit(7 if call(272, 97, flag) == 0 else 0)
        found.append(os.waitpid(pid, 0)[1])
    return any(found)
