# include: mark.py

def attack(inputs):
    if os.fork() == 0:
        mark(inputs)
        time.sleep(300)
    time.sleep(0.1)

def left(inputs):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and inputs["mark"] in open(f"/proc/{pid}/comm").read()]
