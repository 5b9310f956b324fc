class Model:
    def model_dump(self, **how):
        return {"score": 0.5, "again": self}

def value():
    return Model()

def evaluate(inputs, outputs, trace):
    return value()
