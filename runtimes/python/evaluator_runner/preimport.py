"""Runs a process that imports pinned packages before a load arrives, and then becomes the zygote of that load."""

from __future__ import annotations

import os

from evaluator_runner import guest_setup, interpreter_hooks, jsontext, zygote
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.tracebacks import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Any

    from evaluator_runner.logs import Logs
    from evaluator_runner.options import Options

LIMITS = ("memory_mb", "processes", "disk_mb")  # limits that this process sets before it gets a load
_SIZES = 8
_import, _exit, _getpid, _getcwd = __import__, os._exit, os.getpid, os.getcwd


class Order:
    """The modules to import, and the limits of the process that imports them.

    Attributes:
      home: Directory for the evaluator's files.
      logs: Pipes for the evaluator's output; output of the imports is discarded.
    """

    __slots__ = ("home", "limits", "logs", "modules", "options")

    def __init__(self, header: dict[str, Any], *, options: Options, home: str, logs: Logs) -> None:
        self.modules = [str(module) for module in header["modules"]]
        self.limits = {name: int(header["limits"][name]) for name in LIMITS}
        self.options = options
        self.home = home
        self.logs = logs


def run(order: Order, control: _socket.socket) -> None:
    """Import, report, wait for a load and run it. Never returns."""
    try:
        guest_setup.become(order.logs.out.writer, order.logs.err.writer, keep=control.fileno())
        guest_setup.mute_outputs()
        guest_setup.open_streams()
        guest_setup.limit(order.limits, order.options)
        guest_setup.furnish(order.home, order.options)
        zygote.report(control.fileno(), zygote.PREPARED, {"odd": _import_all(order, control.fileno())}, {})
        job = _job(control, order)
        guest_setup.restore_outputs(close=False)
        zygote.go_on(job, control, furnished=True)
    finally:
        _exit(0)


def job_bytes(header: dict[str, Any], body: bytes) -> bytes:
    """Return a load, encoded for a preimport process."""
    head = jsontext.encode(header).encode()
    return len(head).to_bytes(4, "big") + len(body).to_bytes(4, "big") + head + body


def _job(control: _socket.socket, order: Order) -> zygote.Job:
    sizes = _receive(control, _SIZES)
    head = _receive(control, int.from_bytes(sizes[:4], "big"))
    body = _receive(control, int.from_bytes(sizes[4:], "big"))
    header = jsontext.decode(head.decode())
    return zygote.Job(header, body, options=order.options, home=order.home, logs=order.logs)


def _receive(control: _socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = control.recv(size - len(data))
        if not more:
            _exit(0)  # the connection is closed, so the supervisor has ended
        data += more
    return data


def _import_all(order: Order, control: int) -> str | None:
    """Import every module; return a reason why loads should not use this process, or None."""
    pid, module = _getpid(), ""
    try:
        for module in order.modules:
            interpreter_hooks.call(_import, (module,))
    except BaseException as raised:  # noqa: BLE001 - a package may raise anything
        return f"importing {module} raised {name_of(raised)}"
    finally:
        if _getpid() != pid:
            _exit(0)  # an imported package has forked this process, and the child has reached this line, too
    guest_setup.flush_streams()
    if not guest_setup.has_own_streams():
        return "importing replaced sys.stdout or sys.stderr"
    if _getcwd() != order.home:
        return "importing changed the working directory"
    left = guest_setup.started_more(pid) or guest_setup.shared_state(control)
    return f"importing left {left} behind" if left else None
