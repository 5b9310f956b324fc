def attack(inputs):
    while True: pass
