import os
import subprocess


def attack(inputs):
    real = os.path.realpath("model/weights.txt")
    folder = os.path.dirname(real)
    with open("other", "w") as file:
        file.write("changed")
    for change in (
        lambda: os.chmod(folder, 0o777),
        lambda: os.chmod(real, 0o666),
        lambda: os.open(real, os.O_WRONLY),
        lambda: os.open(f"/proc/self/root{real}", os.O_RDWR),
        lambda: os.open(f"/proc/self/fd/{os.open(real, os.O_RDONLY)}", os.O_WRONLY),
        lambda: os.truncate(real, 0),
        lambda: os.unlink(real),
        lambda: os.rename(f"{folder}/part", f"{folder}/gone"),
        lambda: os.replace("other", real),
        lambda: os.link("other", f"{folder}/more.txt"),
        lambda: os.symlink("/tmp", f"{folder}/linked"),
        lambda: os.utime(real, (0, 0)),
        lambda: os.setxattr(real, "user.changed", b"x"),
        lambda: subprocess.run(["sed", "-i", "s/./x/", real], check=True, capture_output=True),
        lambda: subprocess.run(f"echo changed >> {real}", shell=True, check=True, capture_output=True),
    ):
        try:
            change()
        except (OSError, subprocess.SubprocessError):
            continue
        return f"change in line {change.__code__.co_firstlineno}"
    os.remove("model")
    os.mkdir("model")
    with open("model/weights.txt", "w") as file:
        file.write("changed")


def left(inputs):
    with open("model/weights.txt") as file:
        return file.read() != inputs["mark"] or sorted(os.listdir("model")) != ["part", "weights.txt"]
