import os, stat

KNOWN = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}

def attack(inputs):
    found = []
    for folder, _, files in os.walk("/dev"):
        for name in files:
            mode = os.lstat(f"{folder}/{name}").st_mode
            if (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)) and name not in KNOWN and folder != "/dev/pts":
                found.append(f"{folder}/{name}")
    for kind in (stat.S_IFBLK, stat.S_IFCHR):
        try:
            os.mknod("/tmp/node", kind | 0o600, os.makedev(8, 0))
            found.append("a device was made")
        except OSError:
            pass
    return found
