import time
def wait(function):
    time.sleep(10**6)

@wait
def evaluate(inputs, outputs, trace):
    return 0.25
