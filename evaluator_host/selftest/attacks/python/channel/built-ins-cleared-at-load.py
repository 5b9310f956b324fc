__builtins__.clear()
def evaluate(inputs, outputs, trace):
    return {'score': 0.25, 'a': [1, None]}
