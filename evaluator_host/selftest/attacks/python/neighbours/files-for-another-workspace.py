def attack(inputs):
    for folder in ("/tmp", "/dev/shm"):
        open(f"{folder}/{inputs['mark']}", "w").close()
