import os, signal, time

def mark(inputs):
    """Make the mark the name of this process, which can be seen on the host."""
    with open("/proc/self/comm", "w") as file:
        file.write(inputs["mark"])
