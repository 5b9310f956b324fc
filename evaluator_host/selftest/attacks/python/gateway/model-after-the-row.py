# include: ask.py
import time


def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        for _ in range(20):
            time.sleep(0.05)
            try:
                send(request("after " + inputs["mark"]))
            except OSError:
                pass
        os._exit(0)
    return None


def left(inputs):
    time.sleep(0.3)
    return asked("after " + inputs["mark"])
