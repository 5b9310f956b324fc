def attack(inputs):
    return None  # the witness only has to be answered
