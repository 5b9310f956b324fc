# include: reach.py

def attack(inputs):
    routers = {"172.17.0.1", "172.18.0.1", "10.0.2.2", "10.88.0.1", "192.168.65.2"}
    for line in open("/proc/net/route").read().splitlines()[1:]:
        gateway = bytes.fromhex(line.split()[2])[::-1]
        if any(gateway):
            routers.add(".".join(map(str, gateway)))
    return [what for what in (reach((router, 53)) for router in sorted(routers)) if what]
