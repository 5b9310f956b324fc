"""Runs the zygote: a process that loads an evaluator once, and then forks one process per row on request."""

from __future__ import annotations

import _socket
import gc
import os
import sys
import time

from evaluator_runner import (
    absent,
    children,
    compared,
    generators,
    guest_setup,
    imports,
    jsontext,
    kernel,
    modules,
    program,
    row,
)
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.facts import facts_of
from evaluator_runner.failures import error
from evaluator_runner.logs import Logs
from evaluator_runner.tracebacks import FILENAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.options import Options

LOADED, LOAD_FAILED, PREPARED = b"L", b"X", b"P"
ADDRESS, SOCKET, FORK, FORK_WARM, REAP, LOOK = b"A", b"S", b"F", b"f", b"R", b"W"
DONE, REFUSED = b"D", b"E"
REPLY_BYTES = 17

_fork, _waitpid, _waitid, _close, _exit = os.fork, os.waitpid, os.waitid, os.close, os._exit
_setsid, _getpid, _clock = os.setsid, os.getpid, time.perf_counter_ns
_WEXITED, _WNOWAIT, _P_PID = os.WEXITED, os.WNOWAIT, os.P_PID
_send, _freeze, _byteorder = row.send, gc.freeze, sys.byteorder
_Socket, _CONNECTION = _socket.socket, (_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK)
_read, _write, _set_blocking = os.read, os.write, os.set_blocking


class Job:
    """The evaluator that a process loads, and what the process needs for that.

    Attributes:
      header: The `load` header.
      body: The `load` body, still encoded, because the supervisor does not need it.
      home: Directory for the evaluator's files.
      logs: Pipes for the output of user code.
    """

    __slots__ = ("body", "header", "home", "logs", "options")

    def __init__(self, header: dict[str, Any], body: bytes, *, options: Options, home: str, logs: Logs) -> None:
        self.header = header
        self.body = body
        self.options = options
        self.home = home
        self.logs = logs

    @property
    def result_bytes(self) -> int:
        """Return the size limit of a result body."""
        return int(self.header["limits"]["result_kb"]) * 1024


def run(job: Job, control: _socket.socket) -> None:
    """Run the zygote: load, report, then fork rows until the supervisor is gone. Never return."""
    try:
        guest_setup.become(job.logs.out.writer, job.logs.err.writer, keep=control.fileno())
        go_on(job, control, furnished=False)
    finally:
        _exit(0)


def go_on(job: Job, control: _socket.socket, *, furnished: bool) -> None:
    """Load, report and fork rows as `run` does.

    With `furnished`, streams, limits and environment are already set.
    """
    loaded = _load_and_report(job, control.fileno(), furnished=furnished)
    _settle()
    if loaded is not None:
        _Nursery(job, loaded, control).serve()


def run_row(job: Job, sock: int) -> None:
    """Run a row process that loads the evaluator first. Never return.

    This is for evaluators that must not be forked after loading.
    """
    try:
        guest_setup.become(job.logs.out.writer, job.logs.err.writer, keep=sock)
        try:
            loaded = _load(job, furnished=False)
        except program.LoadFailed as failed:
            body = jsontext.to_bytes(jsontext.encode({"error": failed.error}))
            _send(sock, row.FAILED + len(body).to_bytes(4, "big") + bytes(28) + body)
            return
        absent.take()  # discard the failed imports of this load, because the host already has those of the first load
        guest_setup.restore_outputs()
        written = guest_setup.flush_streams()
        _send(sock, row.READY + bytes(32))
        row.RowProcess(loaded, result_bytes=job.result_bytes, written=written).serve(sock)
    finally:
        _exit(0)


def _load(job: Job, *, furnished: bool) -> program.Program:
    if not furnished:
        guest_setup.open_streams()
        guest_setup.limit(job.header["limits"], job.options)
        guest_setup.furnish(job.home, job.options)
    os.environ.update(job.header.get("environment") or {})
    os.environ.update(job.header.get("secrets") or {})
    body = jsontext.decode(job.body.decode())
    children.watch(job)
    pid = _getpid()
    try:
        loaded = program.load(body, job.header, options=job.options)
        compared.watch(loaded.source, loaded.entry)
    finally:
        if _getpid() != pid:
            _exit(0)  # user code has forked this process, and the child has reached this line, too
    if loaded.needs_loop:
        import asyncio  # noqa: F401 - this is imported here, so that no row has to import it
    return loaded


def _load_and_report(job: Job, control: int, *, furnished: bool) -> program.Program | None:
    started = _clock()
    loaded = None
    tried: program.Program | program.LoadFailed | None = None
    body: dict[str, Any] = {}
    classes: list[dict[str, Any]] = []
    try:
        loaded = tried = _load(job, furnished=furnished)
        header = loaded.description()
        body = {"bundle": None, **facts_of(loaded.source, loaded.entry)}
        if loaded.not_loaded:
            body["not_loaded"] = loaded.not_loaded
        classes = loaded.classes
    except program.LoadFailed as failed:
        header, body = {}, {"error": failed.error}
        tried, classes = failed, failed.classes
    except BaseException as raised:  # noqa: BLE001 - memory may run out before the code has started
        kind = "memory_limit" if isinstance(raised, MemoryError) else "load_error"
        header, body = {}, {"error": error(kind, f"the evaluator could not be loaded: {raised!r}")}
    body["missing_imports"] = absent.take()
    if job.header.get("check"):
        given = jsontext.decode(job.body.decode())
        package = modules.package_of(given.get("path") or FILENAME)
        from evaluator_runner.slices import needed_for_rows  # imported here, because only a check needs this module

        kept = None if tried is None else needed_for_rows(tried.source, tried.names)
        body["missing_imports"] = imports.missing_imports(
            given["code"] if loaded is None else "\n".join(loaded.lines),
            FILENAME,
            package=package,
            files=given.get("files"),
            kept=kept,
            known=given.get("known"),
        ) + imports.lacking(kept or [])
    if classes:
        body["classes"] = classes
    header["left"] = _left_running(loaded, control)
    header["pools"] = children.take_pools(job) and loaded is not None
    header["load_ms"] = (_clock() - started) / 1e6
    guest_setup.flush_streams()
    report(control, LOAD_FAILED if loaded is None else LOADED, header, body)
    return loaded


def report(control: int, kind: bytes, header: dict[str, Any], body: dict[str, Any]) -> None:
    """Send an outcome to the supervisor: its kind, header and body."""
    head, tail = (jsontext.to_bytes(jsontext.encode(part)) for part in (header, body))
    _send(control, kind + len(head).to_bytes(4, "big") + len(tail).to_bytes(4, "big") + head + tail)


def _left_running(loaded: program.Program | None, control: int) -> str | None:
    if loaded is None:
        return None
    return guest_setup.started_more(_getpid()) or guest_setup.shared_state(control)


def _settle() -> None:
    """Undo effects of loading that rows should not inherit, or could use against this process."""
    guest_setup.restore_outputs()
    guest_setup.reset_child_signal()
    generators.settle()
    kernel.set_inspectable(inspectable=False)


class _Nursery:
    """Forks and reaps rows only when the supervisor requests it, so that no process id is reused too early.

    After each fork, the first write to a page of memory copies the page, in this process too. So the code that runs for
    each row uses few objects.
    """

    def __init__(self, job: Job, loaded: program.Program, control: _socket.socket) -> None:
        self._control = control
        self._channel = control.fileno()
        self._pid = 0
        self._row = row.RowProcess(loaded, result_bytes=job.result_bytes, written=guest_setup.flush_streams())
        self._row.rehearse()
        self._orphaned = not job.options.private_tmp
        self._address = b""  # address of the supervisor's listener
        self._given = -1  # descriptor of the next row's socket, if there is no listener

    def serve(self) -> None:
        """Execute the supervisor's commands until it is gone."""
        channel = self._channel
        show, hide = kernel.inspectability(inspectable=True), kernel.inspectability(inspectable=False)
        _freeze()
        while True:
            command = _read(channel, 1)
            if command in (FORK, FORK_WARM):
                # A row may have made its pipes (descriptors 1 and 2) non-blocking, and the next row uses the same
                # pipes.
                _set_blocking(1, True)  # noqa: FBT003 - positional in os
                _set_blocking(2, True)  # noqa: FBT003
                sock = self._given
                try:
                    if sock < 0:
                        sock = _connect(self._address)
                    show()  # do this before the fork, so that the child does not have to do it
                    pid = _fork()
                except OSError as refused:
                    hide()
                    self._reap()
                    self._reply(REFUSED, refused.errno or 0)
                    if sock >= 0:
                        _close(sock)
                    self._given = -1
                    continue
                if pid == 0:
                    self._become_row(sock, warm=command == FORK_WARM)
                hide()
                # The previous row is reaped only now, because it may have ended on another core in the meantime.
                if self._pid:
                    self._reap()
                self._pid = pid
                _write(channel, DONE + (pid << 64).to_bytes(16, "big"))
                _close(sock)
                self._given = -1
            elif not self._execute(command):
                return

    def _execute(self, command: bytes) -> bool:
        """Execute a command other than forking a row; return False when the supervisor is gone."""
        if command == REAP:
            self._reap()
            self._reply(DONE)
        elif command == LOOK:
            self._look()
        elif command == ADDRESS:
            self._address = _read(self._channel, _read(self._channel, 1)[0])
        elif command == SOCKET:
            self._take_socket()
        else:
            return False
        return True

    def _take_socket(self) -> None:
        space, flags = _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC
        ancillary = self._control.recvmsg(1, space, flags)[1]
        self._given = int.from_bytes(ancillary[0][2], _byteorder)

    def _become_row(self, sock: int, *, warm: bool) -> None:
        try:
            _setsid()
            _close(self._channel)
            if self._orphaned:
                kernel.die_with_parent()
            if warm:
                self._row.warm_up()
            self._row.serve(sock)
        finally:
            _exit(0)

    def _look(self) -> None:
        try:
            seen = _waitid(_P_PID, self._pid, _WEXITED | _WNOWAIT)
        except OSError:
            seen = None
        self._reply(DONE, seen.si_code if seen else 0, seen.si_status if seen else 0)

    def _reap(self) -> None:
        if self._pid:
            try:
                _waitpid(self._pid, 0)
            except OSError:  # user code has ignored SIGCHLD, so the kernel has reaped the row
                pass
            self._pid = 0

    def _reply(self, kind: bytes, first: int = 0, second: int = 0) -> None:
        _send(self._channel, kind + first.to_bytes(8, "big") + second.to_bytes(8, "big"))


def _connect(address: bytes) -> int:
    """Return a blocking socket connected to the supervisor's listener; do not wait if the listener's queue is full."""
    made = _Socket(*_CONNECTION)
    made.connect(address)
    made.setblocking(True)  # noqa: FBT003 - positional in _socket
    return made.detach()
