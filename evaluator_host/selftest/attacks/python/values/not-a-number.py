def value():
    return float('nan')

def evaluate(inputs, outputs, trace):
    return value()
