# include: calls.py

def attack(inputs):
    found = []
    for name in ("mnt", "net", "user", "pid", "ipc", "uts", "cgroup"):
        try:
            descriptor = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
        except OSError:
            descriptor = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
        found.append(call(308, 268, descriptor, 0))
    return allowed(*found)
