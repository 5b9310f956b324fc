import os

def attack(inputs):
    for folder in ("/tmp", "/dev/shm"):
        os.makedirs(f"{folder}/{inputs['mark']}/closed")
        open(f"{folder}/{inputs['mark']}/closed/file", "w").close()
        os.chmod(f"{folder}/{inputs['mark']}/closed", 0)
        os.chmod(f"{folder}/{inputs['mark']}", 0)
        open(folder.encode() + b"/\xff\n", "w").close()
        os.symlink("/opt", f"{folder}/link")
        os.mkfifo(f"{folder}/fifo")

def left(inputs):
    return os.listdir("/tmp") + os.listdir("/dev/shm")
