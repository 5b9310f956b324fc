# include: frames.py

def attack(inputs):
    write_to_all(frame(2))  # 2 is the number of its own row; 1 was the load
