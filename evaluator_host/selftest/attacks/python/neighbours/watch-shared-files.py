# include: calls.py

def attack(inputs):
    folder = os.open("/usr", os.O_RDONLY)
    return allowed(
        call(253, None), call(294, 26, 0), call(254, 27, 3, b"/usr", 0x20), call(72, 25, folder, 1026, 1)
    )
