# include: ask.py
def attack(inputs):
    granted = inputs["granted"]
    with socket.create_connection((PLACE.hostname, PLACE.port), timeout=10) as connection:
        connection.sendall(f"CONNECT {granted} HTTP/1.1\r\nHost: {granted}\r\n\r\n".encode())
        if b" 200 " not in connection.recv(65536):
            return "the granted host cannot be reached"
        connection.sendall(request("wait " + inputs["mark"], host=granted).encode())
        try:
            for _ in range(8):
                connection.sendall(b"x" * (1 << 20))
            answer = connection.recv(65536).decode("latin-1")
            return answer if " 200 " in answer[:20] else None  # the host has kept or read all of these bytes
        except OSError:
            return None
