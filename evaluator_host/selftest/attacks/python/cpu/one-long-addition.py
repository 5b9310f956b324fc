def attack(inputs): return sum(range(10**15))
