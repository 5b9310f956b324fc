import hashlib

def attack(inputs):
    found = []
    for path in ("/etc/shadow", "/etc/sudoers", "/root/.ssh/id_rsa", "/root/.bash_history"):
        try:
            open(path).close()
            found.append(path)
        except OSError:
            pass
    if hashlib.sha256(open("/etc/passwd", "rb").read()).hexdigest() == inputs["passwd"]:
        found.append("the host's /etc/passwd")
    return found
