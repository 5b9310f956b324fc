def value():
    return {'score': 0.25, **{f'm{n}': n for n in range(10**5)}}

def evaluate(inputs, outputs, trace):
    return value()
