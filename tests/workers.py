"""Forks the processes of a test run from one process that has imported and collected the tests.

If each process did this itself, it would need 8 s and 400 MB.

xdist starts `python tests/workers.py NAME` for each of its processes. This program passes its standard input and output
to the process that has collected the tests. The collecting process then forks a process, which continues as xdist's
process with this input and output. All forked processes share the imported code in memory.
"""

import gc
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

_MESSAGE_BYTES = 1 << 20
_FILE = Path(__file__).resolve()
# standard input of the process that collects; it is closed when this process ends, and then that process ends too
_kept: list[Any] = []


def fork_workers(arguments: tuple[str, ...], specs: list[Any]) -> None:
    """Start a process that collects the tests that these pytest arguments select, and make xdist fork its processes
    from this process.
    """
    import shlex  # noqa: PLC0415 - only this function needs it, not each process
    import subprocess  # noqa: PLC0415 - as above

    name = f"evaluator-host-tests-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{name}")  # the name of the socket is abstract, so that there is no file
    listener.listen()
    only = [*arguments, "-n", "0", "--collect-only", "-qq"]
    _kept.append(
        subprocess.Popen(
            [sys.executable, "-m", "tests.workers", str(listener.fileno()), json.dumps(only)],
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=_FILE.parents[1],
        )
    )
    listener.close()
    for spec in specs:
        spec.python = shlex.join([sys.executable, "-IS", str(_FILE), name])


def _launch(name: str) -> None:
    """Request a forked process that continues with this process's input and output, and exit when it exits."""
    with socket.socket(socket.AF_UNIX) as forked:
        forked.connect(f"\0{name}")
        message = {"env": dict(os.environ), "cwd": os.getcwd()}  # noqa: PTH109 - the import of pathlib takes longer than the rest
        socket.send_fds(forked, [json.dumps(message).encode()], [0, 1, 2])
        os.close(0)
        os.close(1)
        forked.recv(1)


def _collect(arguments: list[str]) -> None:
    import pytest  # noqa: PLC0415 - only the collecting process needs it

    gc.disable()  # nearly all objects of this process stay, so that a garbage collection would take seconds and free little
    pytest.main(arguments)
    gc.enable()
    gc.collect()
    gc.freeze()


def _serve(listener: socket.socket) -> dict[str, Any]:
    """Fork a process for each connection, and return the connection's message in the forked process. This process
    itself exits when the run ends.
    """
    import select  # noqa: PLC0415 - only the collecting process needs it

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the signal comes from the terminal; this process ends with the run
    while listener in select.select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        listener.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        data, descriptors, *_ = socket.recv_fds(connection, _MESSAGE_BYTES, 3)
        connection.detach()  # the connection stays open until this process ends
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        message: dict[str, Any] = json.loads(data)
        return message
    os._exit(0)


def _go_on(message: dict[str, Any]) -> None:
    """Continue as a process that xdist has started, and read from the input which tests to run."""
    os.chdir(message["cwd"])
    os.environ.clear()
    os.environ.update(message["env"])
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 - the files stay open until the process ends
    sys.__stdin__, sys.__stdout__ = sys.stdin, sys.stdout
    sys.argv = ["-c"]
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(eval(sys.stdin.readline()), main.__dict__)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1].isdecimal():
        _collect(json.loads(sys.argv[2]))
        _go_on(_serve(socket.socket(fileno=int(sys.argv[1]))))
    else:
        with suppress(KeyboardInterrupt):
            _launch(sys.argv[1])
