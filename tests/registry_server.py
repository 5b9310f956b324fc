"""Debian's registry server on a loopback port, which engines trust without TLS."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry; `name` is `127.0.0.1:<port>`, `storage` where its blobs lie."""

    name: str
    storage: Path

    def blobs(self) -> dict[str, Path]:
        """Every blob, by its digest."""
        found = self.storage.glob("docker/registry/v2/blobs/sha256/*/*/data")
        return {f"sha256:{file.parent.name}": file for file in found}


@contextmanager
def serving(home: Path) -> Iterator[Registry]:
    """Yield a registry that keeps its files in a folder."""
    if shutil.which("docker-registry") is None:
        pytest.fail("there is no registry server: install docker-registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    storage = f"storage: {{filesystem: {{rootdirectory: {home}/data}}}}"
    (home / "config.yml").write_text(f"version: 0.1\n{storage}\nhttp: {{addr: '127.0.0.1:{port}'}}\n")
    with (home / "log").open("w") as log:
        server = subprocess.Popen(["docker-registry", "serve", str(home / "config.yml")], stdout=log, stderr=log)
    try:
        for _ in range(200):
            with contextlib.suppress(requests.RequestException):
                requests.get(f"http://127.0.0.1:{port}/v2/", timeout=5).close()
                break
            assert server.poll() is None, (home / "log").read_text()
            time.sleep(0.05)
        yield Registry(f"127.0.0.1:{port}", home / "data")
    finally:
        server.terminate()
        server.wait()
