# include: calls.py

def attack(inputs):
    found = []
    for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000):
        answer = call(56, 220, flag | 17, 0, 0, 0, 0)
        if answer == 0:
            os._exit(0)
        found.append(isinstance(answer, int))
    found.append(call(435, 435, 0, 0) != "ENOSYS")
    return any(found)
