class Later:
    def __await__(self):
        while True:
            yield

def value():
    return Later()

def evaluate(inputs, outputs, trace):
    return value()
