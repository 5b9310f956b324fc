import subprocess, sys

def attack(inputs):
    waits = [sys.executable, "-I", "-S", "-c", "input()"]
    return len([subprocess.Popen(waits, stdin=subprocess.PIPE) for _ in range(100)])
