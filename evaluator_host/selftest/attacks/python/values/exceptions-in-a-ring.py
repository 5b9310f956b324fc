def value():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    for _ in range(10**4):
        second = ExceptionGroup("g", [second])
    raise second

def evaluate(inputs, outputs, trace):
    return value()
