import threading, time
threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
STATE = []

def attack(inputs):
    STATE.append("left")

def left(inputs):
    return STATE
