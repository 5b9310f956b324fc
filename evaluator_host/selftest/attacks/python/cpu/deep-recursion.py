def attack(inputs): return attack(inputs)
