import os, sys

def attack(inputs):
    opened = []
    for top in {"/opt", os.path.dirname(os.__file__), *filter(os.path.isdir, sys.path)}:
        for folder, folders, files in os.walk(top):
            folders[:] = folders[:20]
            for name in files[:50]:
                try:
                    os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_APPEND))
                    opened.append(name)
                except OSError:
                    pass
    return opened[:5]
