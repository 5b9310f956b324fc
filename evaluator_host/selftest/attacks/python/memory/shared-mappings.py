import mmap, time

def attack(inputs):
    shared = mmap.mmap(-1, 300 << 20)  # RLIMIT_DATA does not count such mappings
    for at in range(0, len(shared), 4096):
        shared[at] = 1
    time.sleep(2)  # gives the watchdog time, because it looks only 20 times a second
    return "300 MB of shared memory"
