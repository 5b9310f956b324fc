import socket

def attack(inputs):
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect("\0" + inputs["abstract"])
        except OSError:
            return None
    return "connected to an abstract socket of the host"
