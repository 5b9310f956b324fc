def attack(inputs):
    globals()["seen"] = True
    raise ValueError("the first of a batch")
