# include: reach.py

def attack(inputs):
    servers = {"192.0.2.53", "127.0.0.53", "127.0.0.11"}
    try:
        servers |= {line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")}
    except OSError:
        pass
    query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01"
    for server in servers - {"0.0.0.0"}:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
            try:
                door.sendto(query, (server, 53))
            except OSError:
                continue
            if not server.startswith("127."):
                return f"a datagram left for {server}"
    return None
