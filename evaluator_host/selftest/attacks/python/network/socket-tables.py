def attack(inputs):
    wanted = f":{inputs['port']:04X} "
    return wanted in open("/proc/net/tcp").read() and "the host's connections can be listed"
