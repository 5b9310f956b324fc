# include: interpreters.py
import threading

def spin():
    run_in(own.create(), "while True: pass")

def attack(inputs):
    for _ in range(4):
        threading.Thread(target=spin).start()
    spin()
