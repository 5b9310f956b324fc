import os

def attack(inputs):
    mounts = [line.split() for line in open("/proc/self/mountinfo")]
    found = set()
    for folder in {fields[4] for fields in mounts if fields[fields.index("-") + 1] == "proc"}:
        for pid in filter(str.isdigit, os.listdir(folder)):
            try:
                words = open(f"{folder}/{pid}/cmdline", "rb").read().split(b"\0")
            except OSError:
                continue
            if words[0] and not words[0].endswith(b"bwrap") and not any(b"/runner." in word for word in words):
                found.add(words[0].decode()[-40:])
    return sorted(found)[:5]
