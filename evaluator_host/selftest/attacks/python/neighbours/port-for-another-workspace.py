import socket
DOOR = socket.create_server(("127.0.0.1", 47831))

def attack(inputs):
    return None
