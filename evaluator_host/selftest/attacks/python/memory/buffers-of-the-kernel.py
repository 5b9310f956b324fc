import socket, time

def attack(inputs):
    held, size = [], 0
    try:
        for _ in range(450):
            pair = socket.socketpair()
            held.append(pair)
            for end in pair:
                end.setblocking(False)
                try:
                    while True:
                        size += end.send(b"x" * 65536)
                except BlockingIOError:
                    pass
    except OSError:
        pass
    if size < 128 << 20:
        return None
    time.sleep(5)  # gives the watchdog time, also on a busy machine
    return f"{size >> 20} MB in sockets"
