import mmap, time

def attack(inputs):
    shared = mmap.mmap(-1, 300 << 20)  # RLIMIT_DATA does not count such mappings
    for at in range(0, len(shared), 4096):
        shared[at] = 1
    time.sleep(5)  # gives the watchdog time, also on a busy machine
    return "300 MB of shared memory"
