import os, socket

def attack(inputs):
    found = []
    for path in [*inputs["engine"], "/run", "/var/run"]:
        for name in [path, *(os.path.join(path, one) for one in (os.listdir(path) if os.path.isdir(path) else ()))]:
            if name.endswith(".sock"):
                with socket.socket(socket.AF_UNIX) as door:
                    try:
                        door.connect(name)
                        found.append(name)
                    except PermissionError:
                        found.append(name + " is there, but closed")
                    except OSError:
                        pass
    return found
