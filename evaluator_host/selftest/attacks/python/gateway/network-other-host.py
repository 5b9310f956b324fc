# include: ask.py
def connect(to, host=None, then=b""):
    """Return the answers to CONNECT and to the bytes sent through the tunnel."""
    with socket.create_connection((PLACE.hostname, PLACE.port), timeout=5) as connection:
        connection.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {host or to}\r\n\r\n".encode())
        answer = connection.recv(65536)
        try:
            if then and b" 200 " in answer:
                connection.sendall(then)
                answer += connection.recv(65536)
        except OSError:
            pass
    return answer.decode("latin-1")


def attack(inputs):
    granted, other = inputs["granted"], inputs["port"]
    hello = bytes.fromhex("16030100350100003103030000000000000000000000000000000000000000000000000000000000000000")
    hello += bytes.fromhex("000002130101000006000000020000")
    attempts = [
        connect(f"localhost:{other}"),
        connect(f"127.0.0.1:{other}"),
        connect(f"[::ffff:127.0.0.1]:{other}"),
        connect("169.254.169.254:80"),
        connect(granted, host=f"localhost:{other}"),
        send(f"GET http://localhost:{other}/ HTTP/1.1\r\nHost: {granted}\r\n\r\n"),
        send(f"GET http://{granted}@localhost:{other}/ HTTP/1.1\r\nHost: localhost:{other}\r\n\r\n"),
    ]
    inside = [
        connect(granted, then=f"GET / HTTP/1.1\r\nHost: localhost:{other}\r\n\r\n".encode()),
        connect(granted, then=f"GET http://localhost:{other}/ HTTP/1.1\r\nHost: {granted}\r\n\r\n".encode()),
        connect(granted, then=hello),
    ]
    got = [one[:60] for one in attempts if " 200 " in one[:20]]
    return got + [one[:120] for one in inside if one.count("HTTP/1.1 200") > 1]
