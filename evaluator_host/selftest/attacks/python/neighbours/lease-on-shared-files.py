# include: calls.py

def attack(inputs):
    """Take a lease on the C library: every process that opens it, inside or outside sandboxes, would have to wait."""
    file = os.open(next(line.split()[-1] for line in open("/proc/self/maps") if "libc" in line), os.O_RDONLY)
    return allowed(call(72, 25, file, 1024, 0), call(72, 25, file, 1024, 1))
