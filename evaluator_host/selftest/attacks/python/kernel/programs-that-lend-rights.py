# include: calls.py

def attack(inputs):
    import stat
    found = []
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys")]
        for name in files:
            mode = os.lstat(f"{folder}/{name}").st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                found.append(f"{folder}/{name}")
    return found if "NoNewPrivs:\t0" in open("/proc/self/status").read() else None
