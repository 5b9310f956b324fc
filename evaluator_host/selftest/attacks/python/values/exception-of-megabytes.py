def value():
    return 1 / 0 if False else (_ for _ in ()).throw(ValueError('x' * (64 << 20)))

def evaluate(inputs, outputs, trace):
    return value()
