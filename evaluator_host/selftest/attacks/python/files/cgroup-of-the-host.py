import re

OWN = re.compile(r"(/\.\.)*(/|/evaluator-host\.[0-9a-f]{12}/[0-9a-f]{12})")

def attack(inputs):
    lines = [line for process in ("self", "1") for line in open(f"/proc/{process}/cgroup").read().splitlines()]
    return [line for line in lines if not OWN.fullmatch(line.split(":", 2)[2])]
