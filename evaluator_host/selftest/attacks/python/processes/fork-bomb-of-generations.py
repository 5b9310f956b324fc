import os, time

def attack(inputs):
    first = os.getpid()
    for _ in range(7):
        try:
            os.fork()
        except BlockingIOError:
            time.sleep(0.05)
    time.sleep(0.3)
    if os.getpid() != first:
        time.sleep(60)
    running = sum(name.isdigit() for name in os.listdir("/proc"))
    return running if running > 60 else None
