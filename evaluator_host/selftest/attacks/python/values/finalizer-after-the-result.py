import os, weakref

class Late:
    def __init__(self):
        self.number = 0.25
    def __del__(self):
        os._exit(3)

def value():
    late = Late()
    weakref.finalize(late, os._exit, 4)
    return {"score": late.number, "late": late}

def evaluate(inputs, outputs, trace):
    return value()
