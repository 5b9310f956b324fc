# include: calls.py

def attack(inputs):
    import resource
    found = []
    for kind in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
        soft, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            try:
                resource.setrlimit(kind, (hard + 1, hard + 1))
                found.append(kind)
            except (OSError, ValueError):
                pass
    try:
        os.nice(-5)
        found.append("nice")
    except OSError:
        pass
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        found.append("real time")
    except OSError:
        pass
    return found
