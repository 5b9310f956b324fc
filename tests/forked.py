"""Runs the command line in processes that are forked from a process that has already imported it. These are real
processes, and each saves a second of imports.

    ended = run(["keys", "list"], env=..., cwd=...)   # like subprocess.run: `returncode`, `stdout`, `stderr`
    process = Forked(["serve", "--port", "0"], env=..., stdout=log.fileno())
    ended = run(["-c", "from evaluator_host.client import Client; ..."], ...)   # a program, as `python -c` runs it

Each command is a separate process, with its own environment, arguments, files, signals and exit code. But its
`/proc/PID/cmdline` and `environ` are those of the process from which it was forked. Tests that read these files, or
that are about the start of a process, run `tests.server.COMMAND` instead. However the tests end, processes that still
run are killed. All processes of a test run share one process that has imported the command line (`_template`).
"""

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import httpx

from evaluator_host.engine.sandbox.linux.instance import is_dead
from tests.authorities import share_authorities
from tests.leftovers import begin_run

APART = "EVALUATOR_HOST_TEST_APART"
"""Setting that makes each process of a run fork commands from its own template, so that their processor time counts as its
own."""

_LOOK_EVERY_S = 2.0
_MESSAGE_BYTES = 1 << 20
_HANGS_S = 250.0  # seconds; on a busy machine a command may take minutes, and a test may take five
_MODULES = (
    "evaluator_host.cli.main", "evaluator_host.platform.terminal.command", "evaluator_host.cli.serve", "evaluator_host.cli.run",
    "evaluator_host.platform.keys.commands", "evaluator_host.platform.jobs.commands", "evaluator_host.platform.packages.commands", "evaluator_host.cli.doctor",
    "evaluator_host.platform.evaluators.commands", "evaluator_host.platform.datasets.commands", "evaluator_host.platform.secrets.commands", "evaluator_host.server.server",
    "evaluator_host.server.workers", "evaluator_host.platform.wires.wire", "evaluator_host.selftest.command", "aiosqlite",
    "evaluator_host.platform.terminal.setting_problems", "evaluator_host.platform.wires.routes", "evaluator_host.vendors.uipath.executions",
    "evaluator_host.vendors.uipath.records", "anyio._backends._asyncio", "typer._adapters", "typer._click.decorators",
    "uvicorn.lifespan.off", "rich._emoji_codes", "alembic.migration", "alembic.operations", "alembic.script",
)  # fmt: skip


class Forked:
    """A running command. `pid`, `returncode`, `poll`, `wait`, `terminate`, `kill` and `send_signal` are as in `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        self.args = [*arguments]
        self.returncode: int | None = None
        self._told, theirs = os.pipe()
        out = os.open(os.devnull, os.O_WRONLY) if stdout is None else os.dup(stdout)
        error = os.dup(out if stderr in (None, subprocess.STDOUT) else int(stderr or 0))
        message = {
            "arguments": self.args,
            "env": dict(os.environ if env is None else env),
            "cwd": str(cwd or Path.cwd()),
        }
        descriptors = [os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin), out, error, theirs]
        try:
            socket.send_fds(_template(), [json.dumps(message).encode()], descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        pid = os.read(self._told, 16)
        assert pid, "the process from which commands are forked has ended; its output says why"
        self.pid = int(pid)

    def poll(self) -> int | None:
        """Return the exit code, or None while the command runs. If a signal ended the command, return minus its number."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the command ends, and return its exit code."""
        if self.returncode is None:
            waiting = select.poll()  # `select` does not accept descriptors over 1,023
            waiting.register(self._told, select.POLLIN)
            if not waiting.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(os.read(self._told, 16) or -signal.SIGKILL)
            os.close(self._told)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send the command a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Stop the command as an operator would."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    given: str = "",
    stdin: int | None = None,
    timeout: float = _HANGS_S,
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end and return its output; its standard input is `given` or a descriptor.

    Raises:
      subprocess.TimeoutExpired: the command took longer, and was killed.
    """
    with (
        tempfile.TemporaryFile("w+") as read,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as error,
    ):
        read.write(given)
        read.seek(0)
        process = Forked(
            arguments,
            env=env,
            cwd=cwd,
            stdin=read.fileno() if stdin is None else stdin,
            stdout=out.fileno(),
            stderr=error.fileno(),
        )
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        printed = []
        for file in (out, error):
            file.seek(0)
            printed.append(file.read())
    return subprocess.CompletedProcess(process.args, code, *printed)


def make_program(folder: Path) -> int:
    """Write a program `evaluator-host` that a shell can run, and whose processes are forked like those of `run`. Return
    the descriptor that the program must inherit.
    """
    program = folder / "evaluator-host"
    program.write_text(_PROGRAM.format(python=sys.executable, descriptor=_template().fileno()))
    program.chmod(0o755)
    return _template().fileno()


_PROGRAM = """\
#!/bin/sh
'''exec' "{python}" -IS "$0" "$@" # '''
import json, os, signal, socket, sys
told, theirs = os.pipe()
message = {{"arguments": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}
template = socket.socket(fileno={descriptor})
socket.send_fds(template, [json.dumps(message).encode()], [0, 1, 2, theirs])
os.close(theirs)
pid = int(os.read(told, 16))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(os.read(told, 16) or -9)
sys.exit(code if code >= 0 else 128 - code)
"""


@cache
def _template() -> socket.socket:
    """Return a connection to the process that forks this process's commands, and that ends together with this process.

    The forking process is itself forked from a process that all processes of a run share, since imports take seconds.
    """
    apart = f"-{os.getpid()}" if APART in os.environ else ""
    name = f"\0{begin_run()}-forked-{os.geteuid()}{apart}"
    ours = _seqpacket()
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            ours.connect(name)
            break
        with contextlib.suppress(OSError), _seqpacket() as listener:  # an error means that another process was faster
            listener.bind(name)
            listener.listen()
            _start_shared(listener.fileno())
    atexit.register(ours.close)
    return ours


def _seqpacket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MESSAGE_BYTES)
    return made


def _start_shared(listener: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(listener)],
        pass_fds=[listener],
        stdin=subprocess.DEVNULL,  # this stream and the next belong to xdist, and must not stay open
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
    )
    process.returncode = 0  # nobody waits for this process


def _share(listener: socket.socket) -> socket.socket:
    """Fork a process for each connection, and return the connection in the forked process. This process itself exits
    when the run ends.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        if not select.select([listener], [], [], _LOOK_EVERY_S)[0]:
            if is_dead(begin_run()):
                os._exit(0)
            continue
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return connection
        connection.close()


def _serve(connection: socket.socket) -> list[str]:
    """Fork a process for each message, and return the message's arguments in the forked process. This process itself
    exits when the connection is closed.
    """
    running: dict[int, tuple[int, int]] = {}  # for each pidfd: the process id, and the descriptor for the exit status
    while True:
        ready = select.select([connection.fileno(), *running], [], [])[0]
        for pidfd in running.keys() & set(ready):
            _tell_end(pidfd, *running.pop(pidfd))
        if connection.fileno() not in ready:
            continue
        data, descriptors, *_ = socket.recv_fds(connection, _MESSAGE_BYTES, 4)
        if not data:
            for pid, _ in running.values():
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        message = json.loads(data)
        pid = os.fork()
        if pid == 0:
            connection.close()
            for pidfd, (_, told) in running.items():
                os.close(pidfd)
                os.close(told)
            return _become(message, descriptors)
        *given, told = descriptors
        for descriptor in given:
            os.close(descriptor)
        running[os.pidfd_open(pid)] = (pid, told)
        with contextlib.suppress(BrokenPipeError):
            os.write(told, str(pid).encode().ljust(16))


def _tell_end(pidfd: int, pid: int, told: int) -> None:
    _, status = os.waitpid(pid, 0)
    os.close(pidfd)
    with contextlib.suppress(BrokenPipeError):
        os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
    os.close(told)


def _become(message: dict[str, Any], descriptors: list[int]) -> list[str]:
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(message["cwd"])
    os.environ.clear()
    os.environ.update(message["env"])
    return [str(argument) for argument in message["arguments"]]


def _build_api() -> None:
    """Make the description of the API once, because that imports the modules that the routes need later."""
    from evaluator_host.engine.config.settings import Settings  # noqa: PLC0415 - a process that only asks for another does not need it
    from evaluator_host.server.app import describe_app  # noqa: PLC0415 - as above

    describe_app(Settings(data_dir=Path(tempfile.gettempdir()))).openapi()


def _read_tables() -> None:
    """Read the tables of the database, of dialects and of plugins, as each command does at its start."""
    from sqlalchemy.orm import configure_mappers  # noqa: PLC0415 - a process that only asks for another does not need it

    from evaluator_host.engine.contracts.table import all_dialects  # noqa: PLC0415 - as above
    from evaluator_host.platform.plugins import plugins  # noqa: PLC0415 - as above

    configure_mappers()
    all_dialects()
    plugins()


def _end(main: Callable[[], object]) -> NoReturn:
    """Run a command and end the process, without freeing its memory, because freeing shared memory would first copy it."""
    code, killed = 1, False
    try:
        main()
        code = 0
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        killed = True
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - it prints the error as the interpreter does
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        if killed:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the signal comes from the terminal; this process ends with the tests
    gc.disable()
    for module in _MODULES:
        import_module(module)
    share_authorities()
    httpx.Client().close()  # this reads the certificate authorities once for all forked processes
    _build_api()
    _read_tables()
    gc.freeze()
    from evaluator_host import __main__ as command

    sys.argv = ["evaluator-host", *_serve(_share(socket.socket(fileno=int(sys.argv[1]))))]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.argv[1:2] == ["-c"]:
        _, _, program = sys.argv
        sys.argv, sys.path[0] = ["-c"], ""
        main = sys.modules["__main__"] = ModuleType("__main__")
        _end(lambda: exec(program, main.__dict__))
    sys.modules["__main__"] = command
    _end(command.main)
