def value():
    return {'score': 0.25, 1: 1, None: 2, (3, 4): 3, 1.5: 4, b'x': 5}

def evaluate(inputs, outputs, trace):
    return value()
