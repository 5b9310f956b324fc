x = bytearray(300 << 20)
def evaluate(inputs, outputs, trace):
    return 0.25
