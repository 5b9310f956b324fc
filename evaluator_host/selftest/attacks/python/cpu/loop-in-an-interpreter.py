# include: interpreters.py

def attack(inputs):
    run_in(own.create(), "while True: pass")
