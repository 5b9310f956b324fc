import hashlib, os

def attack(inputs):
    try:
        os.kill(inputs["pid"], 0)
        what = "signalled"
    except ProcessLookupError:
        return None
    except PermissionError:
        what = "seen"
    if inputs["pid"] < 1000:  # in the sandbox, another process may have this id
        with open(f"/proc/{inputs['pid']}/cmdline", "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != inputs["command"]:
                return None
    return f"the host's process can be {what}"
