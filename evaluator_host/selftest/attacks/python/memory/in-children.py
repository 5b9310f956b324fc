import os, time

def stat_of(pid):
    try:
        return open(f"/proc/{pid}/stat").read()
    except OSError:
        return ""

def attack(inputs):
    reader, writer = os.pipe()
    for _ in range(6):
        if os.fork() == 0:
            held = b"x" * (50 << 20)
            os.write(writer, b".")
            time.sleep(60)
    os.close(writer)
    os.set_blocking(reader, False)
    filled, dead, until = 0, 0, time.monotonic() + 10
    while filled < 6 and not dead and time.monotonic() < until:
        time.sleep(0.1)
        try:
            filled += len(os.read(reader, 16))
        except BlockingIOError:
            pass
        dead = sum(line.split()[2:3] == ["Z"] for line in map(stat_of, filter(str.isdigit, os.listdir("/proc"))))
    time.sleep(5)  # gives the watchdog time, also on a busy machine
    return filled == 6 and not dead and "six children hold 50 MB each"
