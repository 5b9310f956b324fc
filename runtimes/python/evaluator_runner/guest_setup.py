"""Prepares a process for user code: its descriptors, limits, environment and streams."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import io
import os
import resource
import sys

from evaluator_runner import children, generators, kernel, later
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.options import Options

# number of processes of the runner itself: supervisor, zygote, the row, and for a moment the next row
_OWN_PROCESSES = 4
_RESERVED_BY_NODE = 1 << 30  # bytes that Node reserves but does not use; a cgroup or the watchdog limits what it uses
_MB = 1024 * 1024
_PATH = "/opt/commands:/usr/local/bin:/usr/bin:/bin"
# where the interpreter finds its shared libraries
_LIBRARIES = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "BLIS_NUM_THREADS")
# keeps pyarrow from starting a thread, which a fork would not copy
_NO_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
# copies of the log pipes while code loads, because user code may close descriptors 1 and 2
_SAVED_OUT, _SAVED_ERR = 20, 21
_MOST_DESCRIPTORS = 1024  # number of descriptors to close; the runner opens only a dozen
_streams: list[_Stream] = []
wrote: dict[str, bool] = {}
"""Not empty if user code has written to standard output or error since both were last flushed."""
_dup2, _close, _listdir = os.dup2, os.close, os.listdir
_readlink, _fstat = os.readlink, os.fstat
_STATELESS = frozenset(("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"))
_FORMAT, _REGULAR, _ACCESS = 0o170000, 0o100000, 0o3


class _CountingFile(io.FileIO):
    """File descriptor 1 or 2; counts the bytes that are written to it."""

    written = 0

    def write(self, data: Any, /) -> int:
        wrote["any"] = True
        count = super().write(data) or 0
        self.written += count
        return count


class _Buffer(io.BufferedWriter):
    """The buffer of a `_CountingFile`; records that something was written to it."""

    def write(self, data: Any, /) -> int:
        wrote["any"] = True
        return super().write(data)


class _Text(io.TextIOWrapper):
    """The text stream of a `_Buffer`; records that something was written to it."""

    def write(self, text: str, /) -> int:
        wrote["any"] = True
        return super().write(text)


class _Stream:
    """A text stream that the runner can still flush after user code has replaced or closed `sys.stdout`."""

    def __init__(self, fd: int) -> None:
        self.raw = _CountingFile(fd, "w", closefd=False)
        self.text = _Text(_Buffer(self.raw, 8192), "utf-8", "backslashreplace", newline="\n", line_buffering=True)
        self._flush = self.text.flush

    def flush(self) -> int:
        """Write the buffered text; return the number of bytes written so far."""
        try:
            self._flush()
        except (ValueError, OSError):  # user code has closed the stream
            pass
        return self.raw.written


def become(out: int, err: int, *, keep: int) -> None:
    """Start a new session, move `out` and `err` to descriptors 1 and 2, and close all others except 0 and `keep`."""
    kernel.die_with_parent()
    os.setsid()
    for source, target in ((out, _SAVED_OUT), (err, _SAVED_ERR)):
        os.dup2(source, target, inheritable=False)
    restore_outputs(close=False)
    edges = sorted((keep, _SAVED_OUT, _SAVED_ERR))
    for low, high in zip((2, *edges), (*edges, _MOST_DESCRIPTORS), strict=True):
        os.closerange(low + 1, high)


def mute_outputs() -> None:
    """Discard output until `restore_outputs` is called."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for fd in (1, 2):
        _dup2(null, fd)
    _close(null)


def restore_outputs(*, close: bool = True) -> None:
    """Put the log pipes back on descriptors 1 and 2 after loading.

    With `close`, also close the saved copies of the pipes, because output is not muted again.
    """
    for saved, fd in ((_SAVED_OUT, 1), (_SAVED_ERR, 2)):
        _dup2(saved, fd)
        if close:
            _close(saved)


def open_streams() -> None:
    """Open new `sys.stdin`, `sys.stdout` and `sys.stderr` on descriptors 0, 1 and 2."""
    _streams[:] = [_Stream(1), _Stream(2)]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), "utf-8")
    sys.__stdin__ = sys.stdin  # type: ignore[misc]
    sys.stdout, sys.stderr = (stream.text for stream in _streams)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]


def has_own_streams() -> bool:
    """Return whether `sys.stdout` and `sys.stderr` are still the streams of `open_streams`."""
    return sys.stdout is _streams[0].text and sys.stderr is _streams[1].text


def flush_streams() -> tuple[int, int]:
    """Flush both streams; return how many bytes were written to each stream so far."""
    return _streams[0].flush(), _streams[1].flush()


def limit(limits: dict[str, Any], options: Options) -> None:
    """Set the resource limits; every process of user code inherits them."""
    memory = int(limits["memory_mb"]) * _MB + (_RESERVED_BY_NODE if options.node else 0)
    _lower(resource.RLIMIT_DATA, memory)
    _lower(resource.RLIMIT_FSIZE, int(limits["disk_mb"]) * _MB)
    _lower(resource.RLIMIT_CORE, 0)
    if options.limit_processes:
        _lower(resource.RLIMIT_NPROC, int(limits["processes"]) + _OWN_PROCESSES)
    kernel.set_inspectable(inspectable=True)  # without this, /proc/self would belong to root
    try:
        # opened in binary mode, because text mode would have to import a codec
        with open("/proc/self/oom_score_adj", "wb", 0) as file:
            file.write(b"1000")  # if memory runs out, the kernel kills a row before its supervisor
    except OSError:
        pass


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def furnish(home: str, options: Options) -> None:
    """Set the environment, working directory, import path and built-ins for user code."""
    os.environ.clear()
    os.environ.update(
        {"HOME": home, "TMPDIR": home, "PATH": _PATH, "LANG": "C.UTF-8", **_LIBRARIES},
        PYTHONDONTWRITEBYTECODE="1",
        **children.environment(options, home),
    )
    children.start_plainly()
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"), **_NO_THREAD)
    os.chdir(home)
    sys.argv[:] = ["evaluator.py"]
    import builtins
    from _sitebuiltins import Quitter

    for name in ("exit", "quit"):  # Python's option `-S` leaves out these two built-ins
        setattr(builtins, name, Quitter(name, "sys.exit()"))
    generators.watch()
    if options.packages is not None:
        _add_packages(options.packages)
    if options.sdk is not None:
        sys.path.append(options.sdk)  # after the packages, so that a pinned real package comes before its light modules
        later.install_stand_ins(options.sdk)


def _add_packages(directory: str) -> None:
    if any(name.endswith(".pth") for name in os.listdir(directory)):
        import site

        site.addsitedir(directory)
    else:
        sys.path.append(directory)


def started_more(pid: int) -> str | None:
    """Return what is left after loading that forked rows cannot use: `threads`, `interpreters`, `processes` or None."""
    try:
        tasks = len(_listdir("/proc/self/task"))
    except OSError:
        threading = sys.modules.get("threading")
        tasks = threading.active_count() if threading else 1
    if tasks > 1:
        return "threads"
    if children.interpreters_left():
        return "interpreters"
    return "processes" if kernel.children_of(pid) else None


def shared_state(control: int) -> str | None:
    """Return what is still open after loading and would be shared by forked rows: `descriptors`, `memory` or None.

    Rows would share the offset of an open file, the data in a pipe, socket or eventfd, and the content of a shared
    mapping. Devices without state, and files that are mapped only for reading, are not reported.

    Args:
      control: The runner's own descriptor, which is not reported.
    """
    try:
        maps = kernel.read_text("/proc/self/maps").splitlines()
        names = _listdir("/proc/self/fd")
    except OSError:  # this process cannot open another descriptor
        return "descriptors"
    if any(line.split(" ", 2)[1][1::2] == "ws" for line in maps):
        return "memory"
    mapped = {line.split(maxsplit=5)[-1] for line in maps}
    own = {"1", "2", str(_SAVED_OUT), str(_SAVED_ERR), str(control)}
    return "descriptors" if any(_has_state(name, mapped) for name in names if name not in own) else None


def _has_state(fd: str, mapped: set[str]) -> bool:
    try:
        path = _readlink(f"/proc/self/fd/{fd}")
        regular = _fstat(int(fd)).st_mode & _FORMAT == _REGULAR
        flags = kernel.read_text(f"/proc/self/fdinfo/{fd}").partition("flags:")[2].split()[0]
    except OSError:  # the descriptor that was open only while the list of descriptors was read
        return False
    return path not in _STATELESS and not (regular and path in mapped and int(flags, 8) & _ACCESS == 0)


def reset_child_signal(signal: Any = _signal.signal) -> None:
    """Remove a SIGCHLD handler of user code, because the zygote must be able to wait for its rows."""
    signal(_signal.SIGCHLD, _signal.SIG_DFL)
