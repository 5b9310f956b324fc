# include: calls.py

def attack(inputs):
    os.mkdir("r")
    return allowed(call(161, 51, b"/tmp/r"), call(155, 41, b"/tmp", b"/tmp/r"))
