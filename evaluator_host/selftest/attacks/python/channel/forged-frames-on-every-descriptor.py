# include: frames.py

def attack(inputs):
    write_to_all(frame(2))  # the host numbers its calls: 1 loaded the code, and 2 is this row
