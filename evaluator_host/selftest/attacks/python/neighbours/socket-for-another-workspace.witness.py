import socket

def attack(inputs):
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect("\0evaluator-host-selftest")
        except OSError:
            return None
    return "a socket of another workspace answered"
