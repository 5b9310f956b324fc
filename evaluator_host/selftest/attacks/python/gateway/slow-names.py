# include: ask.py
import time


def attack(inputs):
    opened = []
    for number in range(24):
        connection = socket.create_connection((PLACE.hostname, PLACE.port))
        to = f"{inputs['mark']}{number}.slow.invalid:80"
        connection.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
        opened.append(connection)
    time.sleep(0.3)  # waits until the host is looking up these names; then the witness asks for another name
