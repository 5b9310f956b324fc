class Fault(BaseException):
    def __str__(self):
        while True: pass

def value():
    raise Fault

def evaluate(inputs, outputs, trace):
    return value()
