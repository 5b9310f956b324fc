"""Python attacks on the network: the host's own ports and sockets, its neighbours, and the world."""

from typing import Final

from evaluator_host.selftest.attack import Attack, Group, Guard, python

_ALONE: Final = "the sandbox has a network namespace of its own with nothing in it"
_TRY: Final = '''
import errno, socket

def reach(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    """Return what answers there; a refusal counts, because it came from somewhere."""
    with socket.socket(family, kind) as door:
        door.settimeout(0.5)
        try:
            door.connect(address)
            if kind == socket.SOCK_DGRAM:
                door.send(b"?" * 16)
        except TimeoutError:
            return "no answer, but a way there"
        except OSError as error:
            return "refused from afar" if error.errno == errno.ECONNREFUSED else None
        return f"connected to {address}"
'''

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "host-loopback-port",
        Group.NETWORK,
        """
import socket

def attack(inputs):
    try:
        socket.create_connection(("127.0.0.1", inputs["port"]), 1).close()
    except OSError:
        return None
    return "connected to a listener on the host's 127.0.0.1"
""",
        why="the loopback interface is the sandbox's own",
        without=Guard.NETWORK,
    ),
    python(
        "host-other-addresses",
        Group.NETWORK,
        _TRY
        + """
def attack(inputs):
    found = []
    for address in inputs["addresses"]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        found.append(reach((address, inputs["port"]), family))
    return [what for what in found if what]
""",
        why=_ALONE,
        without=Guard.NETWORK,
    ),
    python(
        "host-gateway",
        Group.NETWORK,
        _TRY
        + """
def attack(inputs):
    routers = {"172.17.0.1", "172.18.0.1", "10.0.2.2", "10.88.0.1", "192.168.65.2"}
    for line in open("/proc/net/route").read().splitlines()[1:]:
        gateway = bytes.fromhex(line.split()[2])[::-1]
        if any(gateway):
            routers.add(".".join(map(str, gateway)))
    return [what for what in (reach((router, 53)) for router in sorted(routers)) if what]
""",
        why=_ALONE,
        without=Guard.NETWORK,
    ),
    python(
        "cloud-metadata",
        Group.NETWORK,
        _TRY
        + """
def attack(inputs):
    return reach(("169.254.169.254", 80)) or reach(("100.100.100.200", 80))
""",
        why=_ALONE,
        without=Guard.NETWORK,
    ),
    python(
        "dns-datagram",
        Group.NETWORK,
        _TRY
        + """
def attack(inputs):
    servers = {"192.0.2.53", "127.0.0.53", "127.0.0.11"}
    try:
        servers |= {line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")}
    except OSError:
        pass
    query = b"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x07example\\x03com\\0\\0\\x01\\0\\x01"
    for server in servers - {"0.0.0.0"}:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
            try:
                door.sendto(query, (server, 53))
            except OSError:
                continue
            if not server.startswith("127."):
                return f"a datagram left for {server}"
    return None
""",
        why=_ALONE,
        without=Guard.NETWORK,
    ),
    python(
        "name-resolution",
        Group.NETWORK,
        """
import socket

def attack(inputs):
    for name in ("example.com", "host.docker.internal", "gateway.docker.internal", "metadata.google.internal"):
        try:
            return socket.getaddrinfo(name, 80)[0][4]
        except OSError:
            pass
    try:
        resolvers = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
    except OSError:
        resolvers = []
    if set(resolvers) - {"0.0.0.0"}:
        return resolvers
    names = [line.split() for line in open("/etc/hosts") if line.strip() and not line.startswith("#")]
    return [line for line in names if not line[0].startswith(("127.", "::1", "fe00:", "ff0"))]
""",
        why="there is no resolver, and /etc/hosts names the sandbox alone",
        without=(Guard.NETWORK, Guard.ROOT),
    ),
    python(
        "interfaces",
        Group.NETWORK,
        """

def attack(inputs):
    names = {line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]}
    return sorted(name for name in names - {"lo"} if not name.endswith("0") or name.startswith(("eth", "en")))
""",
        why=_ALONE,
        without=Guard.NETWORK,
    ),
    python(
        "socket-tables",
        Group.NETWORK,
        """
def attack(inputs):
    wanted = f":{inputs['port']:04X} "
    return wanted in open("/proc/net/tcp").read() and "the host's connections can be listed"
""",
        why="/proc/net shows the sandbox's own network namespace",
        without=Guard.NETWORK,
    ),
    python(
        "abstract-unix-socket",
        Group.NETWORK,
        """
import socket

def attack(inputs):
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect("\\0" + inputs["abstract"])
        except OSError:
            return None
    return "connected to an abstract socket of the host"
""",
        why="abstract names belong to a network namespace",
        without=Guard.NETWORK,
    ),
    python(
        "unix-socket-of-the-host",
        Group.NETWORK,
        """
import socket

def attack(inputs):
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect(inputs["socket"])
        except OSError:
            return None
    return "connected to a socket in the host's files"
""",
        why="nothing of the host's files is in the sandbox, so that no path leads to a socket",
        without=Guard.ROOT,
    ),
    python(
        "engine-socket",
        Group.NETWORK,
        """
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
""",
        why="the engine's socket is never put into a sandbox",
        without=Guard.ROOT,
    ),
    python(
        "raw-socket",
        Group.NETWORK,
        """
import socket

def attack(inputs):
    found = []
    for family, kind, protocol in (
        (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        (socket.AF_PACKET, socket.SOCK_RAW, 0),
        (socket.AF_PACKET, socket.SOCK_DGRAM, 0),
        (socket.AF_INET, 10, 0),
    ):
        try:
            socket.socket(family, kind, protocol).close()
            found.append((int(family), int(kind)))
        except OSError:
            pass
    return found
""",
        why="the filter knows no raw and no packet sockets, and there is no CAP_NET_RAW",
        without=(Guard.SECCOMP, Guard.CAPABILITIES),
    ),
    python(
        "socket-families",
        Group.NETWORK,
        """
import socket

def attack(inputs):
    found = []
    for family in range(3, 48):
        if family == socket.AF_INET6:
            continue
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                socket.socket(family, kind, 0).close()
                found.append(family)
            except OSError:
                pass
    return sorted(set(found))
""",
        why="the filter knows Unix and IP sockets only: netlink, vsock, alg and the rest are kernel code without need",
        without=Guard.SECCOMP,
    ),
)
