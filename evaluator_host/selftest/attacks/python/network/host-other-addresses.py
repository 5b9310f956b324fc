# include: reach.py

def attack(inputs):
    found = []
    for address in inputs["addresses"]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        found.append(reach((address, inputs["port"]), family))
    return [what for what in found if what]
