import os

def attack(inputs):
    made = []
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "tmp")]
        if folder == "/dev":
            folders.remove("shm")
        try:
            os.close(os.open(f"{folder}/{inputs['mark']}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(f"{folder}/{inputs['mark']}")
            made.append(folder)
        except OSError:
            pass
    return made[:5]
