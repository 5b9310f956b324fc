"""A second Docker engine, which tests may kill or freeze. One test at a time may use it; its images stay for the next run."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker

from tests import engines


class CrashEngine:
    """A dockerd in a separate network namespace, because a dockerd that starts removes bridges of other engines.

    Attributes:
      address: Address at which it listens.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"unix://{folder}/docker.sock"

    def start(self) -> None:
        """Start the engine, and wait until it answers."""
        options = ("--bridge=none", "--iptables=false", "--ip-forward=false")
        engines.start_dockerd(self._folder, *options, launcher=("unshare", "--net"))

    def kill(self) -> None:
        """Kill the engine, without cleaning up."""
        engines.stop_dockerd(self._folder, how=signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the engine's process in the `with` block: it accepts connections, but does not answer."""
        pid = int((self._folder / "dockerd.pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Stop the engine, and clean up after killed engines."""
        engines.remove_engine_leftovers(self._folder)

    def copy_image(self, image: str, *, source: str) -> None:
        """Copy an image from the engine at `source`, unless this engine has it."""
        near: Any = docker.APIClient(base_url=source, timeout=300)
        far: Any = docker.APIClient(base_url=self.address, timeout=300)
        wanted = near.inspect_image(image)["Id"]
        if wanted not in {found["Id"] for found in far.images()}:
            archive = self._folder / "image.tar"
            with archive.open("wb") as file:
                file.writelines(near.get_image(image))
            with archive.open("rb") as file:
                list(far.load_image(file))
            archive.unlink()
            far.prune_images(filters={"dangling": True})
        near.close()
        far.close()


@contextmanager
def crash_engine(image: str, *, source: str) -> Iterator[CrashEngine]:
    """Yield the running engine, with an image copied from the engine at `source`."""
    folder = engines.CRASH_DIR
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users.lock").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        engine = CrashEngine(folder)
        engine.start()
        try:
            engine.copy_image(image, source=source)
            yield engine
        finally:
            engine.stop()
