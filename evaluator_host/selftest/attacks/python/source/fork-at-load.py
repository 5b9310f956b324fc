import os, time
COPY = os.fork() == 0
time.sleep(0 if COPY else 0.2)

def evaluate(inputs, outputs, trace):
    return 0.75 if COPY else 0.25
