import socket

def attack(inputs):
    try:
        socket.create_connection(("127.0.0.1", 47831), 1).close()
    except OSError:
        return None
    return "a port of another workspace answered"
