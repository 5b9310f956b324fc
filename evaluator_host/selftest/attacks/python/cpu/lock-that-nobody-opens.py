import threading
def attack(inputs): threading.Semaphore(0).acquire()
