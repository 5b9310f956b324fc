def value():
    return {'score': 0.25, type('K', (), {'__str__': lambda k: 1 / 0})(): 1}

def evaluate(inputs, outputs, trace):
    return value()
