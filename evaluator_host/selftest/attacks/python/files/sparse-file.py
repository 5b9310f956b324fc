import os

def attack(inputs):
    os.close(os.open("sparse", os.O_CREAT | os.O_WRONLY))
    os.truncate("sparse", 200 << 20)
    return os.stat("sparse").st_size
