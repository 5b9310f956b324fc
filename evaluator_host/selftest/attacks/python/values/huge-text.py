def value():
    return {'score': 0.5, 'reason': 'x' * (2 << 20)}

def evaluate(inputs, outputs, trace):
    return value()
