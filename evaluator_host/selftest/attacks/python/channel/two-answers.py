# include: frames.py

import stat, threading, time

def kind_of(name):
    try:
        return os.fstat(int(name)).st_mode
    except OSError:
        return 0

def attack(inputs):
    own = max(int(name) for name in os.listdir("/proc/self/fd") if stat.S_ISSOCK(kind_of(name)))

    def more():
        while True:
            time.sleep(0.005)
            os.write(own, ANSWER)

    threading.Thread(target=more, daemon=True).start()
    os.write(own, ANSWER * 3)

def left(inputs):
    time.sleep(0.1)  # waits so that another answer comes first
