import os

def attack(inputs):
    for number in range(100_000):
        os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))
    return "100,000 empty files"
