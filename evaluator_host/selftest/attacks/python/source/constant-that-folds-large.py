x = ((1 << 4000) ** 4000, 'x' * (300 << 20))
def evaluate(inputs, outputs, trace):
    return 0.25
