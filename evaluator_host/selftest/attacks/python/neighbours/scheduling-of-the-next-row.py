import os

NICE = os.getpriority(os.PRIO_PROCESS, 0)

def attack(inputs):
    for pid in (os.getppid(), 1):
        for change in (
            lambda: os.setpriority(os.PRIO_PROCESS, pid, 10),
            lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
        ):
            try:
                change()
            except OSError:
                pass

def left(inputs):
    return os.getpriority(os.PRIO_PROCESS, 0) != NICE or os.sched_getscheduler(0)
