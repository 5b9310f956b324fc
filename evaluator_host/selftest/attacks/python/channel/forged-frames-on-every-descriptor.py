# include: frames.py

def attack(inputs):
    write_to_all(frame(2))  # its own row: 1 was the load
