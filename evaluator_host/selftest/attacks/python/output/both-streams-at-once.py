import os, threading

def flood(fd):
    for _ in range(128):
        os.write(fd, b"x" * (1 << 20))

def attack(inputs):
    both = [threading.Thread(target=flood, args=(fd,)) for fd in (1, 2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
