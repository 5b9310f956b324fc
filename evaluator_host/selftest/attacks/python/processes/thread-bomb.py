import threading, time

def attack(inputs):
    for _ in range(100):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return "100 threads"
