with open('/tmp/x', 'wb') as f:
    for _ in range(40): f.write(bytes(1 << 20))
def evaluate(inputs, outputs, trace):
    return 0.25
