def attack(inputs):
    try:
        return open(inputs["file"]).read() and "the host's file was read"
    except OSError:
        return None
