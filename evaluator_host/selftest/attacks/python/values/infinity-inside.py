def value():
    return {'score': 0.5, 'a': [{'b': float('-inf')}]}

def evaluate(inputs, outputs, trace):
    return value()
