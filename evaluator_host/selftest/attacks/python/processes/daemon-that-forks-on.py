# include: mark.py

def attack(inputs):
    if os.fork() == 0:
        mark(inputs)
        until = time.monotonic() + 20
        # each fork replaces the process, so every list of processes is out of date
        while time.monotonic() < until:
            try:
                if os.fork():
                    os._exit(0)
                os.setsid()
            except BlockingIOError:
                pass
            time.sleep(0.001)
        os._exit(0)
    time.sleep(0.2)

def left(inputs):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and inputs["mark"] in open(f"/proc/{pid}/comm").read()]
