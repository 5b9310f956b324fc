def attack(inputs):
    return None  # it only has to be answered
