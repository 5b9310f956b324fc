def attack(inputs):
    for number in range(30_000): print(number)
