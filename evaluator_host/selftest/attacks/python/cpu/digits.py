def attack(inputs): return int('9' * 10**7)
