import socket

def attack(inputs):
    for name in ("example.com", "host.docker.internal", "gateway.docker.internal", "metadata.google.internal"):
        try:
            return socket.getaddrinfo(name, 80)[0][4]
        except OSError:
            pass
    try:
        resolvers = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
    except OSError:
        resolvers = []
    if set(resolvers) - {"0.0.0.0"}:
        return resolvers
    names = [line.split() for line in open("/etc/hosts") if line.strip() and not line.startswith("#")]
    return [line for line in names if not line[0].startswith(("127.", "::1", "fe00:", "ff0"))]
