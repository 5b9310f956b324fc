"""A real host process for tests, which start it by its command line, call it over HTTP, and end it in several ways."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import httpx

from tests.conftest import DATA_DIR, FEW_SANDBOXES
from tests.forked import Forked

COMMAND = [sys.executable, "-m", "evaluator_host"]
_READY_S = 200  # seconds for a start while many other tests run
_IDLE_SANDBOXES = "EVALUATOR_HOST_IDLE_SANDBOXES"
PREWARMED = {_IDLE_SANDBOXES: "1"}
"""Environment of a host that, as by default, keeps one sandbox for each language ready for the first call."""
FORKED = {"EVALUATOR_HOST_SANDBOX_START": "template"}
"""Environment of a host that forks its Python sandboxes from a template, which takes half the processor time of a fresh start.

`tests/contract/test_template.py` checks that both kinds of sandboxes behave in the same way.
"""


_SERVE = "import sys\nsys.argv[1:] = {}\nfrom evaluator_host.__main__ import main\nmain()"


class Server:
    """A process of `evaluator-host serve` on a free port. `client` is an HTTP client for it, `log` is its output."""

    def __init__(
        self,
        backend: str = "bubblewrap",
        *,
        log: Path,
        environment: dict[str, str] | None = None,
        data_dir: Path = DATA_DIR,
        stderr: int = subprocess.STDOUT,
        command: Sequence[str] | None = None,
        program: str = "",
        host: str = "127.0.0.1",
        few_sandboxes: bool = True,
    ) -> None:
        """Start the host.

        Args:
          command: Program and arguments before `serve`. By default, the process is forked from a process that has
            imported everything (`tests.forked`), unless `environment` sets another PYTHONPATH.
          program: Code that a forked process runs before it serves, to change modules of the host.
          few_sandboxes: Whether the host keeps only a few evaluators warm, as suits tests; False for the host's
            default.
        """
        self.port = free_port()
        self._log_path = log
        # no sandboxes start in advance, since starting them costs more than most tests; `PREWARMED` starts them
        sizes = FEW_SANDBOXES if few_sandboxes else {}
        few = {f"EVALUATOR_HOST_{name.upper()}": str(most) for name, most in sizes.items()}
        variables = {**os.environ, **index_environment(), _IDLE_SANDBOXES: "0", **few, **(environment or {})}
        arguments = [
            "serve",
            "--host",
            host,
            "--port",
            str(self.port),
            "--data-dir",
            str(data_dir),
            "--sandbox",
            backend,
        ]
        with log.open("wb") as file:
            self.process: Forked | subprocess.Popen[bytes]
            if command is None and "PYTHONPATH" not in (environment or {}):
                started = ["-c", f"{program}\n{_SERVE.format(arguments)}"] if program else arguments
                self.process = Forked(started, env=variables, stdout=file.fileno(), stderr=stderr)
            else:
                self.process = subprocess.Popen(
                    [*(command or COMMAND), *arguments], env=variables, stdout=file, stderr=stderr
                )
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=60)

    @property
    def log(self) -> str:
        return self._log_path.read_text()

    def wait_until_ready(self) -> Self:
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log
            with contextlib.suppress(httpx.TransportError):
                if self.client.get("/readyz").status_code == 200:
                    return self
            time.sleep(0.05)
        raise AssertionError(f"the host is not ready: {self.log}")

    def kill(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop the host as an operator would, and return its exit code."""
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(30)

    def __enter__(self) -> Self:
        return self.wait_until_ready()

    def __exit__(self, *_: object) -> None:
        self.stop()


def index_environment() -> dict[str, str]:
    """Return the environment variables with which this machine reaches the package indexes."""
    names = {"SSL_CERT_FILE": "EVALUATOR_HOST_CA_FILE", "HTTPS_PROXY": "EVALUATOR_HOST_PROXY"}
    return {setting: os.environ[name] for name, setting in names.items() if name in os.environ}


def new_home(folder: Path) -> Path:
    """Make and return a data directory that contains only a link to installed tools, which saves a minute."""
    made, tools = folder / "data", DATA_DIR / "toolchain"
    made.mkdir()
    # the first host on a machine finds no tools yet, and installs them here
    tools.mkdir(parents=True, exist_ok=True)
    (made / "toolchain").symlink_to(tools)
    return made


def free_port() -> int:
    """Return a free port.

    The port is below those that the kernel gives to connections, so that no connection takes it.
    """
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
