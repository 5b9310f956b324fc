import atexit, os, threading
atexit.register(os.write, 1, b"at the end of the load")

class Late:
    def __del__(self):
        os.write(1, b"when it was collected")

def attack(inputs):
    atexit.register(os.write, 1, b"at the end of the row")
    threading._register_atexit(os.write, 1, b"at the end of its threads")
    globals()["late"] = Late()
