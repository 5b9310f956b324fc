# include: mark.py

def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            mark(inputs)
            time.sleep(300)
        os._exit(0)
    time.sleep(0.2)

def left(inputs):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and inputs["mark"] in open(f"/proc/{pid}/comm").read()]
