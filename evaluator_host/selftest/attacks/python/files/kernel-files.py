import os

def attack(inputs):
    found = []
    for path in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/proc/sys/kernel/core_pattern",
                 "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper",
                 "/sys/fs/cgroup/cgroup.procs",
                 "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max"):
        try:
            opened = os.open(path, os.O_RDONLY if path in ("/proc/kcore", "/proc/kmsg") else os.O_WRONLY)
            if os.fstat(opened).st_rdev == os.stat("/dev/null").st_rdev:
                continue  # the sandbox masks this file
            found.append(path)
        except OSError:
            pass
    return found
