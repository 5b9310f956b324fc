import socket

def attack(inputs):
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect(inputs["socket"])
        except OSError:
            return None
    return "connected to a socket in the host's files"
