# include: calls.py

def attack(inputs):
    found = [call(166, 39, b"/proc", 2), call(166, 39, b"/opt/runner", 2), call(165, 40, b"none", b"/", 0, 32, 0)]
    return [answer for answer in found if answer not in ("EPERM", "EINVAL", "ENOENT", "EBUSY")]
