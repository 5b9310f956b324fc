import os

def attack(inputs):
    os.write(1, b"\xff\xfe" + "é".encode()[:1] + b"\xed\xa0\x80" + b"}\x00\r\n")
