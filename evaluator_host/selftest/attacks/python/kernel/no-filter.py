# include: calls.py

def attack(inputs):
    return "Seccomp:\t2" not in open("/proc/self/status").read()
