import os

def attack(inputs):
    found = []
    tops = ["/sys/fs/cgroup"] + [line.split()[1] for line in open("/proc/self/mounts") if " cgroup" in line]
    for top in tops:
        for folder, folders, files in os.walk(top):
            del folders[20:]
            for name in ("release_agent", "notify_on_release", "cgroup.procs", "tasks", "devices.allow", "cgroup.subtree_control"):
                try:
                    os.close(os.open(f"{folder}/{name}", os.O_WRONLY))
                    found.append(f"{folder}/{name}")
                except OSError:
                    pass
            try:
                os.mkdir(f"{folder}/made-by-a-guest")
                found.append(f"{folder}/made-by-a-guest")
            except OSError:
                pass
    return found
