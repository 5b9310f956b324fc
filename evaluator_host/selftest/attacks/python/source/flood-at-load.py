import os
for _ in range(128): os.write(1, bytes(1 << 20))
def evaluate(inputs, outputs, trace):
    return 0.25
