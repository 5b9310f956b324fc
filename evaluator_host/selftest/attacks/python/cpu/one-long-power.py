def attack(inputs): return (3 ** (10**8)) % 7
