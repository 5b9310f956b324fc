def value():
    return (0.5 for _ in iter(int, 1))

def evaluate(inputs, outputs, trace):
    return value()
