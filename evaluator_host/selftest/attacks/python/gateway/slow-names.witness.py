# include: ask.py
def attack(inputs):
    granted = inputs["granted"]
    with socket.create_connection((PLACE.hostname, PLACE.port), timeout=2) as connection:
        connection.sendall(f"CONNECT {granted} HTTP/1.1\r\nHost: {granted}\r\n\r\n".encode())
        try:
            answer = connection.recv(65536)
        except TimeoutError:
            return "the host did not look up this name, because it was busy with names of another workspace"
    return answer.decode("latin-1") if b" 200 " not in answer else None
