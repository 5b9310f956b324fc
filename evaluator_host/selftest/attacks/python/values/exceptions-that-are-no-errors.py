def value():
    raise GeneratorExit

def evaluate(inputs, outputs, trace):
    return value()
