"""Another machine for tests: a network namespace that can vanish. This needs root."""

import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Elsewhere:
    """The other machine.

    Attributes:
      name: Name of the namespace.
      network: The first three numbers of both machines' addresses.
      here: Address of this machine, as the other machine sees it.
    """

    def __init__(self) -> None:
        self.name = f"eh-{secrets.token_hex(4)}"
        self.network = f"198.18.{secrets.randbelow(256)}"
        self.here = f"{self.network}.1"
        self._processes: list[subprocess.Popen[str]] = []

    def run(self, *command: str | Path) -> "subprocess.Popen[str]":
        """Start a program on the other machine; its output is a pipe."""
        inside = ["ip", "netns", "exec", self.name, *command]
        self._processes.append(subprocess.Popen(inside, stdout=subprocess.PIPE, text=True))
        return self._processes[-1]

    def vanish(self) -> None:
        """Stop answering, then end all programs: this machine never learns that their connections ended."""
        # keep-alive probes start only after all data is confirmed, and the kernel may delay a confirmation by 0.2 s
        time.sleep(1)
        # the link itself stays up: without a link, this machine could not send its probes, and would not count them
        _ip(f"-n {self.name} address flush dev far")
        self.end()

    def end(self) -> None:
        """End all programs."""
        for process in self._processes:
            process.kill()
            process.communicate()
        self._processes.clear()


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    """Make the other machine, and remove it at the end of the block."""
    made = Elsewhere()
    _ip(f"netns add {made.name}")
    try:
        _ip(f"link add {made.name} type veth peer name far netns {made.name}")
        _ip(f"address add {made.here}/24 dev {made.name}")
        _ip(f"link set {made.name} up")
        _ip(f"-n {made.name} address add {made.network}.2/24 dev far")
        _ip(f"-n {made.name} link set far up")
        yield made
    finally:
        made.end()
        _ip(f"netns delete {made.name}")


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)
