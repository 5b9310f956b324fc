# include: mark.py

def attack(inputs):
    if os.fork() == 0:
        os.setsid()
        mark(inputs)
        time.sleep(300)
    time.sleep(0.1)
    os.abort()
