# include: interpreters.py
import os
MADE = own.create()

def attack(inputs):
    run_in(MADE, "mark = 1")

def left(inputs):
    reader, writer = os.pipe()
    run_in(MADE, f"import os; os.write({writer}, b'1' if 'mark' in globals() else b'0')")
    return os.read(reader, 1) != b"0"
