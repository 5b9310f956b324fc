import socket

def attack(inputs):
    found = []
    for family, kind, protocol in (
        (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        (socket.AF_PACKET, socket.SOCK_RAW, 0),
        (socket.AF_PACKET, socket.SOCK_DGRAM, 0),
        (socket.AF_INET, 10, 0),
    ):
        try:
            socket.socket(family, kind, protocol).close()
            found.append((int(family), int(kind)))
        except OSError:
            pass
    return found
