import os, signal, time

def mark(inputs):
    """Carry the mark where the host can see it."""
    with open("/proc/self/comm", "w") as file:
        file.write(inputs["mark"])
