import mmap, os
MEMORY = mmap.mmap(-1, 4096)
FILE = open("/etc/passwd")
READER, WRITER = os.pipe()
os.set_blocking(READER, False)

def attack(inputs):
    MEMORY[0] = 1
    FILE.read()
    os.write(WRITER, b"x")

def left(inputs):
    try:
        read = os.read(READER, 1)
    except BlockingIOError:
        read = b""
    return MEMORY[0] or read or not FILE.read()
