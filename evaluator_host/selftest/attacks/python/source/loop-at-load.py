while True: pass
def evaluate(inputs, outputs, trace):
    return 0.25
