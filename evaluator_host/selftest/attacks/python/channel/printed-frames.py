# include: frames.py

def attack(inputs):
    for number in range(1, 5):
        for fd in (1, 2):
            os.write(fd, frame(number) + ANSWER)
