import socket

def attack(inputs):
    try:
        socket.create_connection(("127.0.0.1", inputs["port"]), 1).close()
    except OSError:
        return None
    return "connected to a listener on the host's 127.0.0.1"
