"""Runs the template: a process that has imported the runner, and forks a sandbox for each request of the host.

The host starts it with bubblewrap, in the root of a sandbox and with the right to make namespaces. Only the forked
process reads the host's message about a sandbox (limits, identity, folders; never code or data of an evaluator).
Anything that the template itself reads would be in the memory of all later sandboxes. A forked process makes its own
namespaces and mounts, gives up its rights, installs the system call filter and becomes process 1 and the runner of its
sandbox. The sandbox is isolated in the same way as one that bubblewrap starts with the arguments of the host's
`bubblewrap_args`.
"""

from __future__ import annotations

import _ctypes
import _socket
import gc
import os
import resource
import select
import sys

from evaluator_runner import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _SLAVE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 19
_READ_ONLY = _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 22, 24, 38, 47, 4
_FILTER_MODE = 2
_MOST_CAPABILITIES = 64
_CAPSET_HEADER = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
_NO_RIGHTS = bytes(24)
# CAP_SETGID and CAP_SETUID, which are kept until `--drop-to` has changed the user
_RIGHTS_TO_DROP = (0xC0).to_bytes(4, sys.byteorder) * 2 + bytes(16)
_MOVE_MOUNT, _EMPTY_PATH, _AT_FDCWD = 429, 4, -100
_CLOSE_RANGE, _LAST_DESCRIPTOR = 436, 0xFFFFFFFF
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, b"\x41\x00"
_BYTES_HEAD = bytes.__basicsize__ - 1  # number of bytes in a `bytes` object before its content
_INSTRUCTION_BYTES = 8
_REQUEST_BYTES = 64 * 1024
_MOST_DESCRIPTORS = 5  # maximum number of descriptors in a request: standard streams, packages, data files
_NUMBER_BYTES = 12  # size in bytes of a request's number, which comes before the number of descriptors and the JSON
# parts of /proc that must be read-only, as bubblewrap makes them
_OF_THE_KERNEL = ("sys", "sysrq-trigger", "irq", "bus")
_FAILED = 71


class _Refused(Exception):
    """The kernel refused a step."""


def _function(name: str) -> Callable[..., int]:
    """Return a C library function that raises `_Refused` where the original returns a negative number."""
    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)  # type: ignore[arg-type]

    def call(*arguments: bytes | int | None) -> int:
        result: int = _ctypes.call_function(address, arguments)
        if result < 0:
            raise _Refused(f"{name}{arguments!r}")
        return result

    return call


_unshare, _setns, _mount, _prctl = (_function(name) for name in ("unshare", "setns", "mount", "prctl"))
_ioctl, _syscall, _sethostname = (_function(name) for name in ("ioctl", "syscall", "sethostname"))
_capset = _function("capset")


def run(fd: int) -> None:
    """Serve requests on a socket until the host closes the socket.

    Only a forked process, the runner of a sandbox, returns.
    """
    from evaluator_runner import handles, supervisor  # noqa: F401 - these are imported once for all sandboxes

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # raise the limit of descriptors, because each sandbox takes one of this process
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.collect()
    gc.freeze()
    _Template(_socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, fd)).serve()


class _Template:
    """Answers each request with a letter, the number of the request, and further data.

    `S`: the process has started; the answer has a descriptor of the process, and the number of that descriptor in the
    template. `B`: the process has become a sandbox. `R`: a step was refused; the answer has the reason. `E`: the
    process has ended; the answer has the exit code, and the descriptor's number in place of the request's number.
    """

    def __init__(self, control: _socket.socket) -> None:
        setup = control.recv(_REQUEST_BYTES)
        size = int.from_bytes(setup[:4], "big")
        self._facts = jsontext.decode(setup[4 : 4 + size].decode())
        self._filter = setup[4 + size :]
        self._control = control
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._request = bytearray(_REQUEST_BYTES)
        self._watched = select.epoll()  # the kernel keeps the list of descriptors, so forks do not copy it
        self._watched.register(control.fileno(), select.EPOLLIN)

    def serve(self) -> None:
        while True:
            for fd, _ in self._watched.poll():
                if fd != self._control.fileno():
                    self._reap(fd)
                elif self._start():
                    return

    def _reap(self, fd: int) -> None:
        ended = os.waitid(os.P_PIDFD, fd, os.WEXITED)
        code = 0 if ended is None else ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self._watched.unregister(fd)
        # send this before `close`, after which the number may be used again
        self._control.send(b"E %d %d" % (fd, code))
        os.close(fd)

    def _start(self) -> bool:
        """Take a request and fork; return whether this is the forked process, which then is the runner of a sandbox."""
        space = _socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS)
        size, ancillary, _, _ = self._control.recvmsg_into([self._request], space, _socket.MSG_CMSG_CLOEXEC)
        if not size:
            os._exit(0)
        data = b"".join(sent for _, _, sent in ancillary)
        given = [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]
        number, descriptors = bytes(self._request[:_NUMBER_BYTES]), self._request[_NUMBER_BYTES]
        try:
            if len(given) != descriptors:
                raise _Refused("no file descriptor is free")
            if self._fork(number):
                order = jsontext.decode(self._request[_NUMBER_BYTES + 1 : size].decode())
                _become(order, given, self._facts, self._filter, self._control, number)
                return True
        except (OSError, _Refused) as refused:
            self._control.send(b"R %b %s" % (number, str(refused).encode()[:500]))
        finally:
            self._request[:size] = bytes(size)
        for fd in given:
            os.close(fd)
        return False

    def _fork(self, number: bytes) -> bool:
        _unshare(_NEWPID)
        try:
            pid = os.fork()
            if pid == 0:
                self._watched.close()
                return True
        finally:
            if os.getpid() != 1:  # only the forked process is the first one of its namespace
                _setns(self._own_pids, _NEWPID)
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            raise
        self._watched.register(fd, select.EPOLLIN)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
        self._control.sendmsg([b"S %b %d" % (number, fd)], [rights])
        return False


def _become(
    order: dict[str, Any],
    given: list[int],
    facts: dict[str, Any],
    program: bytes,
    control: _socket.socket,
    number: bytes,
) -> None:
    """Turn this process into process 1 of a new sandbox and let the runner take over; if a step is refused, exit."""
    try:
        for standard, fd in enumerate(given[:3]):
            os.dup2(fd, standard)
        os.setsid()
        _unshare(_NEWNS | _NEWIPC | _NEWUTS | _NEWNET | _NEWCGROUP)
        _sethostname(b"sandbox", 7)
        _bring_loopback_up()
        settings = _mount_proc(facts)
        _mount_own(order, given[3:])
        if order["own_user"] is not None:
            _make_user_namespace(order["own_user"], settings)
        channel = control.detach()
        os.closerange(3, channel)
        # with many sandboxes there are thousands of descriptors
        _syscall(_CLOSE_RANGE, channel + 1, _LAST_DESCRIPTOR, 0)
        os.chdir("/tmp")  # noqa: S108 - the sandbox has its own /tmp
        for kind, value in order["rlimits"]:
            hard = resource.getrlimit(kind)[1]
            lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (lowest, lowest))
        _give_up_rights(program, _RIGHTS_TO_DROP if order["own_user"] is None else _NO_RIGHTS)
        os.write(channel, b"B %b" % number)
        os.close(channel)
        sys.argv[1:] = order["arguments"]
        sys.orig_argv[sys.orig_argv.index("--template") :] = order["arguments"]
    except BaseException as refused:  # noqa: BLE001 - the process must not continue with the rights of the template
        os.write(2, f"runner: the kernel refused a sandbox: {refused!r}\n".encode())
        os._exit(_FAILED)


def _bring_loopback_up() -> None:
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    _ioctl(probe.fileno(), _SET_FLAGS, b"lo".ljust(16, b"\0") + _UP_AND_RUNNING.ljust(24, b"\0"))
    probe.close()


def _mount_proc(facts: dict[str, Any]) -> int:
    """Mount the /proc of the new pid namespace, and mask parts of it.

    Return a descriptor of the folder in which namespaces are limited.
    """
    _mount(None, b"/", None, _SLAVE | _REC, None)
    _mount(b"proc", b"/proc", b"proc", _NOSUID | _NOEXEC | _NODEV, None)
    settings = os.open("/proc/sys/user", os.O_PATH | os.O_CLOEXEC)
    for path in (f"/proc/{name}" for name in _OF_THE_KERNEL):
        if os.path.lexists(path):
            _bind(path.encode(), path.encode())
    for path in facts["masked_files"]:
        _bind(b"/dev/null", path.encode())
    for path in facts["masked_folders"]:
        _make_tmpfs(path, "mode=0555,size=4096", _RDONLY)
    return settings


def _mount_own(order: dict[str, Any], folders: list[int]) -> None:
    for path in ("/tmp", "/dev/shm"):  # noqa: S108
        _make_tmpfs(path, f"mode=1777,size={order['disk_bytes']}")
    _make_tmpfs("/etc", "mode=0755,size=65536")
    for name, text in order["etc"].items():
        fd = os.open(f"/etc/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        os.write(fd, text.encode())
        os.close(fd)
    _mount(None, b"/etc", None, _READ_ONLY, None)
    for fd, place in zip(folders, order["mounts"], strict=True):
        path = place.encode()
        _syscall(_MOVE_MOUNT, fd, b"", _AT_FDCWD, path, _EMPTY_PATH)
        _mount(None, path, None, _READ_ONLY, None)


def _make_tmpfs(path: str, options: str, flags: int = 0) -> None:
    _mount(b"tmpfs", path.encode(), b"tmpfs", _NOSUID | _NODEV | flags, options.encode())


def _bind(source: bytes, target: bytes) -> None:
    _mount(source, target, None, _BIND | _REC, None)
    _mount(None, target, None, _READ_ONLY | _NOEXEC, None)


def _make_user_namespace(uid: int, settings: int) -> None:
    """Move into a new user namespace that does not allow further user namespaces."""
    _unshare(_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{uid} {uid} 1")
    _write("max_user_namespaces", "0", folder=settings)


def _write(path: str, text: str, folder: int | None = None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    os.write(fd, text.encode())
    os.close(fd)


def _give_up_rights(program: bytes, kept: bytes) -> None:
    """Keep only the rights that `--drop-to` needs, give none to programs, and install the system call filter.

    `--drop-to` drops these rights too.
    """
    for number in range(_MOST_CAPABILITIES):
        try:
            _prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        except _Refused:  # all capabilities that the kernel knows are handled
            break
    _prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    _capset(_CAPSET_HEADER, kept)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    length = (len(program) // _INSTRUCTION_BYTES).to_bytes(8, sys.byteorder)
    _prctl(_PR_SET_SECCOMP, _FILTER_MODE, length + (id(program) + _BYTES_HEAD).to_bytes(8, sys.byteorder), 0, 0)
