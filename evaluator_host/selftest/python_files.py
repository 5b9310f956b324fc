"""Python attacks on files: reading the host's, writing the runtime's."""

from typing import Final

from evaluator_host.selftest.attack import Attack, Group, Guard, python

_NOT_THERE: Final = "the sandbox's root holds the runtime only; nothing of the host's files is in it"

ATTACKS: Final[tuple[Attack, ...]] = (
    python(
        "host-file",
        Group.FILES,
        """
def attack(inputs):
    try:
        return open(inputs["file"]).read() and "the host's file was read"
    except OSError:
        return None
""",
        why=_NOT_THERE,
        without=Guard.ROOT,
    ),
    python(
        "host-file-by-detours",
        Group.FILES,
        """
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
""",
        why="links and .. end at the sandbox's own root",
        without=Guard.ROOT,
    ),
    python(
        "host-file-by-hard-link",
        Group.FILES,
        """
import os

def attack(inputs):
    runtime = [f"{folder}/{name}" for folder, _, files in os.walk("/opt") for name in files][:500]
    for path in [inputs["file"], "/etc/passwd", *runtime]:
        for link in ("/tmp/linked", os.path.dirname(path) + "/linked"):
            try:
                os.link(path, link)
            except OSError:
                continue
            os.unlink(link)
            return f"{path} was linked as {link}"
    return None
""",
        why="a link cannot cross from the read-only root to the writable /tmp, and none can be made on that root",
        without=Guard.READ_ONLY,
    ),
    python(
        "host-users",
        Group.FILES,
        """
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
""",
        why=_NOT_THERE,
        without=Guard.ROOT,
    ),
    python(
        "environments-of-processes",
        Group.FILES,
        """
import os

OWN = {"HOME", "TMPDIR", "PATH", "LANG", "USER", "HOSTNAME", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "LC_CTYPE",
       "container", "PWD", "TERM", "JE_ARROW_MALLOC_CONF"}

def attack(inputs):
    names = set(os.environ)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            raw = open(f"/proc/{pid}/environ", "rb").read()
        except OSError:
            continue
        names |= {one.split(b"=")[0].decode() for one in raw.split(b"\\0") if one}
    return sorted(name for name in names - OWN if not name.endswith("_NUM_THREADS"))
""",
        why="a sandbox starts with an empty environment and gets a fixed one",
        without=(Guard.ENVIRONMENT, Guard.CHANNEL),
    ),
    python(
        "other-processes",
        Group.FILES,
        """
import os

def attack(inputs):
    mounts = [line.split() for line in open("/proc/self/mountinfo")]
    found = set()
    for folder in {fields[4] for fields in mounts if fields[fields.index("-") + 1] == "proc"}:
        for pid in filter(str.isdigit, os.listdir(folder)):
            try:
                words = open(f"{folder}/{pid}/cmdline", "rb").read().split(b"\\0")
            except OSError:
                continue
            if words[0] and not words[0].endswith(b"bwrap") and not any(b"/runner." in word for word in words):
                found.add(words[0].decode()[-40:])
    return sorted(found)[:5]
""",
        why="a process namespace and a /proc of its own",
        without=Guard.PROC,
    ),
    python(
        "runner-memory-and-descriptors",
        Group.FILES,
        """
import os

def attack(inputs):
    opened = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        for name in ("mem", "environ", "fd/10", "fd/11", "fd/0", "maps", "root", "cwd"):
            try:
                os.close(os.open(f"/proc/{pid}/{name}", os.O_RDWR if name == "mem" else os.O_RDONLY))
                opened.append(f"{pid}/{name}")
            except OSError:
                pass
    return opened
""",
        why="the runner's processes are not dumpable: the kernel opens nothing of them to others of their user",
        without=Guard.CHANNEL,
    ),
    python(
        "own-memory",
        Group.FILES,
        """
import struct

def attack(inputs):
    constant = next(value for value in evaluate.__code__.co_consts if value == 0.25)
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(id(constant) + 16)
        memory.write(struct.pack("d", 0.75))
    return None
""",
        why="whatever a row does to its own memory, the next row has a process of its own",
        without=Guard.ROWS,
    ),
    python(
        "write-to-the-runtime",
        Group.FILES,
        """
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
""",
        why="interpreter, runner and packages are mounted read-only and belong to somebody else",
        without=Guard.READ_ONLY,
    ),
    python(
        "write-anywhere",
        Group.FILES,
        """
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
""",
        why="the root is read-only but for /tmp and /dev/shm, which are the sandbox's own",
        without=Guard.READ_ONLY,
    ),
    python(
        "devices",
        Group.FILES,
        """
import os, stat

KNOWN = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}

def attack(inputs):
    found = []
    for folder, _, files in os.walk("/dev"):
        for name in files:
            mode = os.lstat(f"{folder}/{name}").st_mode
            if (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)) and name not in KNOWN and folder != "/dev/pts":
                found.append(f"{folder}/{name}")
    for kind in (stat.S_IFBLK, stat.S_IFCHR):
        try:
            os.mknod("/tmp/node", kind | 0o600, os.makedev(8, 0))
            found.append("a device was made")
        except OSError:
            pass
    return found
""",
        why="five harmless devices, and no CAP_MKNOD to make others",
        without=Guard.CAPABILITIES,
    ),
    python(
        "kernel-files",
        Group.FILES,
        """
import os

def attack(inputs):
    found = []
    for path in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/proc/sys/kernel/core_pattern",
                 "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper",
                 "/sys/fs/cgroup/cgroup.procs",
                 "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max"):
        try:
            opened = os.open(path, os.O_RDONLY if path in ("/proc/kcore", "/proc/kmsg") else os.O_WRONLY)
            if os.fstat(opened).st_rdev == os.stat("/dev/null").st_rdev:
                continue  # masked
            found.append(path)
        except OSError:
            pass
    return found
""",
        why="the guest is no superuser, and these are masked, read-only or not there",
        seen="run as root outside any sandbox it names those that exist there, core_pattern and drop_caches among them",
    ),
)
