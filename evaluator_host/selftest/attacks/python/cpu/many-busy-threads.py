import threading

def spin():
    while True:
        pass

def attack(inputs):
    for _ in range(8):
        threading.Thread(target=spin).start()
    spin()
