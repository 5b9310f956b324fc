# include: calls.py

def attack(inputs):
    return allowed(
        call(175, 105, 0, 0, b""), call(313, 273, -1, b"", 0), call(176, 106, b"no-such-module", 0),
        call(246, 104, 0, 0, 0, 0), call(320, 294, -1, -1, 0, 0, 0), call(169, 142, 0, 0, 0, 0),
        call(167, 224, b"/nowhere", 0), call(168, 225, b"/nowhere"), call(163, 89, b"/nowhere"),
        call(170, 161, b"x", 1), call(171, 162, b"x", 1), call(103, 116, 10, 0, 0), call(153, 58),
    )
