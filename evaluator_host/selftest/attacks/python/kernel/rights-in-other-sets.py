# include: calls.py

import subprocess

def attack(inputs):
    found = []
    for right in range(41):
        call(157, 167, 47, 2, right, 0, 0)  # PR_CAP_AMBIENT_RAISE
    call(126, 91, b"\x26\x05\x08\x20" + bytes(4), b"\xff" * 24)
    status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    found += [name for name in ("CapPrm", "CapEff", "CapAmb") if int(fields[name], 16)]
    return found + [f"group {number}" for number in {*os.getgroups(), os.getegid()} if number < 100]
