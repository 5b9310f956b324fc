import os, resource

def attack(inputs):
    for pid in (0, os.getppid()):
        try:
            resource.prlimit(pid, resource.RLIMIT_CPU, (977, 977))
        except OSError:
            pass

def left(inputs):
    return resource.getrlimit(resource.RLIMIT_CPU)[0] == 977
