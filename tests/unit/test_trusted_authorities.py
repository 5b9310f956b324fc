"""The certificates that connections to models and webhooks trust are read only once, since reading blocks the event
loop.
"""

import os
import ssl
from pathlib import Path
from typing import Any

import certifi
import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.models.access import make_http_client
from evaluator_host.types.errors import Misconfigured


async def addresses(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def make_clients(settings: Settings, count: int) -> None:
    for number in range(count):
        make_http_client(settings, f"https://hook{number}.test", timeout_s=1, at_once=1, dial=addresses)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list of the paths of the certificate files that were read; a file that is read twice is there twice."""
    read, real = [], ssl.create_default_context

    def noted(*args: Any, cafile: str) -> ssl.SSLContext:
        read.append(cafile)
        return real(*args, cafile=cafile)

    monkeypatch.setattr(ssl, "create_default_context", noted)
    return read


def test_certificates_are_read_once_for_many_clients_and_again_when_the_file_changes(
    reads: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(Path(certifi.where()).read_bytes())
    settings = Settings(ca_file=file)
    make_clients(settings, 20)
    assert len(reads) == 1
    file.write_text("nothing")
    os.utime(file, ns=(1, 1))
    with pytest.raises(Misconfigured, match="has no certificate"):
        make_clients(settings, 1)
    file.unlink()
    with pytest.raises(Misconfigured, match="cannot be read"):
        make_clients(settings, 1)
