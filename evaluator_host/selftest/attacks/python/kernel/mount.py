# include: calls.py

def attack(inputs):
    os.mkdir("m")
    found = [call(165, 40, b"none", b"/tmp/m", b"tmpfs", 0, 0)]
    found.append(call(165, 40, b"/", b"/tmp/m", 0, 4096, 0))
    return [answer for answer in found if answer == 0]
