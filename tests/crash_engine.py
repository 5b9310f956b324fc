"""A second Docker Engine, one that tests may kill. Who has it, has it alone; its images stay for the next run."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import docker

from evaluator_host.sandbox.linux.watchdog import child_pids
from tests import engines


class CrashEngine:
    """A dockerd of its own, in a network namespace of its own: at its start a dockerd takes down bridges it was not told of.

    Attributes:
      address: Where it listens.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"unix://{folder}/docker.sock"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ("--bridge=none", "--iptables=false", "--ip-forward=false")
        engines.start_dockerd(self._folder, *options, launcher=("unshare", "--net"))

    def kill(self) -> None:
        """Kill it, and what a kill leaves undone stays so."""
        engines.stop_dockerd(self._folder, how=signal.SIGKILL)

    def stop(self) -> None:
        """Stop it, and clean up after those that were killed: shims, what is left of their containers, and mounts."""
        engines.stop_dockerd(self._folder)
        for shim in self._shims():
            for pid in (*child_pids(shim), shim):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for mount in self._mounts():
            subprocess.run(["umount", mount], check=True)

    def copy_image(self, image: str, *, source: str) -> None:
        """Copy an image of the engine at `source`, unless it is here."""
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

    def _shims(self) -> list[int]:
        found = subprocess.run(
            ["pgrep", "-f", f"containerd-shim.*{self._folder}"], check=False, capture_output=True, text=True
        )
        return [int(pid) for pid in found.stdout.split()]

    def _mounts(self) -> list[str]:
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        return [mount for mount in reversed(mounts) if mount.startswith(f"{self._folder}/")]


@contextmanager
def crash_engine(image: str, *, source: str) -> Iterator[CrashEngine]:
    """Yield it running, with an image of the engine at `source` in it."""
    folder = engines.ENGINE_DIR.parent / "docker-crash"
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
