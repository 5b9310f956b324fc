# include: frames.py

def attack(inputs):
    write_to_all((1 << 10).to_bytes(4, "big") + (1 << 20).to_bytes(4, "big") + b"{")
