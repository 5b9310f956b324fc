class Model:
    def model_dump(self, **how):
        while True: pass

def value():
    return Model()

def evaluate(inputs, outputs, trace):
    return value()
