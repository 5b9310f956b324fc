def attack(inputs):
    names = {line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]}
    return sorted(name for name in names - {"lo"} if not name.endswith("0") or name.startswith(("eth", "en")))
