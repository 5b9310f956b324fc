# include: calls.py

def attack(inputs):
    found = [call(29, 194, 0x6568, 4096, 0o1666), call(68, 186, 0x6568, 0o1666), call(64, 190, 0x6568, 1, 0o1666)]
    for answer, destroy in zip(found, ((31, 195), (71, 187), (66, 191))):
        if isinstance(answer, int):
            call(*destroy, answer, 0, 0, 0)
    return allowed(*found)
