import os

def attack(inputs):
    opened = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        for name in ("mem", "environ", "fd/10", "fd/11", "fd/0", "maps", "root", "cwd"):
            try:
                os.close(os.open(f"/proc/{pid}/{name}", os.O_RDWR if name == "mem" else os.O_RDONLY))
                opened.append(f"{pid}/{name}")
            except OSError:
                pass
    return opened
