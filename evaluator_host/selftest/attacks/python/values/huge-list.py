def value():
    return {'score': 0.5, 'a': [0.1] * (4 * 10**5)}

def evaluate(inputs, outputs, trace):
    return value()
