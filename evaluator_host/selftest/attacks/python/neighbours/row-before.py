import re
PATTERN = re.compile(rb"row-[0-9a-f]{24}")

def attack(inputs):
    """Leave copies of many sizes in freed memory, because the next row's data would overwrite a single copy."""
    for times in range(1, 60):
        inputs["row"] * times

def left(inputs):
    """Return data of earlier rows that is still somewhere in this process's memory."""
    found = set()
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in open("/proc/self/maps"):
            start, end = (int(one, 16) for one in line.split()[0].split("-"))
            if "rw" in line and "[v" not in line and end - start < 64 << 20:
                memory.seek(start)
                try:
                    found.update(PATTERN.findall(memory.read(end - start)))
                except OSError:
                    pass
    return found - {inputs["row"].encode()}
