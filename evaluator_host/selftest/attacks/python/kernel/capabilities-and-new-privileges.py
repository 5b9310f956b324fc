# include: calls.py

def attack(inputs):
    fields = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    found = [name for name in ("CapPrm", "CapEff", "CapAmb") if int(fields[name], 16)]
    return found + (["NoNewPrivs"] if fields["NoNewPrivs"] != "1" else []) + (["uid 0"] if os.getuid() == 0 else [])
