import socket

def attack(inputs):
    found = []
    for family in range(3, 48):
        if family == socket.AF_INET6:
            continue
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                socket.socket(family, kind, 0).close()
                found.append(family)
            except OSError:
                pass
    return sorted(set(found))
