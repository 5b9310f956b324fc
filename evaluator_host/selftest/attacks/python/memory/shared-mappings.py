import mmap, time

def attack(inputs):
    shared = mmap.mmap(-1, 300 << 20)  # RLIMIT_DATA does not count such mappings
    for at in range(0, len(shared), 4096):
        shared[at] = 1
    time.sleep(2)  # time for the watchdog, which looks only now and then
    return "300 MB of shared memory"
