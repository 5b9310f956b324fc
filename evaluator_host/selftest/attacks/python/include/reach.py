import errno, socket

def reach(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    """Return the answer from an address; a refusal counts as an answer, because something sent it."""
    with socket.socket(family, kind) as door:
        door.settimeout(0.5)
        try:
            door.connect(address)
            if kind == socket.SOCK_DGRAM:
                door.send(b"?" * 16)
        except TimeoutError:
            return "a connection without an answer"
        except OSError as error:
            return "refused from afar" if error.errno == errno.ECONNREFUSED else None
        return f"connected to {address}"
