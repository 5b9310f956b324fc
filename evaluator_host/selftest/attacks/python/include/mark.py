import os, signal, time

def mark(inputs):
    """Run with the mark in a place where the host can see it."""
    with open("/proc/self/comm", "w") as file:
        file.write(inputs["mark"])
