def value():
    return {'score': 0.25, 'reason': '\ud800 \udfff', '\udc80': 1}

def evaluate(inputs, outputs, trace):
    return value()
