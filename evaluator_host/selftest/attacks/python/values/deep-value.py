def value():
    deep = 0.5
    for _ in range(10**5):
        deep = [deep]
    return {"score": deep}

def evaluate(inputs, outputs, trace):
    return value()
