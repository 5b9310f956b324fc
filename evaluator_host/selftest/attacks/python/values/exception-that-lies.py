class Fault(Exception):
    def __str__(self): raise SystemExit
    def __repr__(self): raise SystemExit
    __class__ = property(lambda fault: 1 / 0)
    __traceback__ = __cause__ = __context__ = property(lambda fault: 1 / 0)

def value():
    raise Fault

def evaluate(inputs, outputs, trace):
    return value()
