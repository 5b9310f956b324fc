"""Fixtures: hosts with every wire, one without keys, and one with keys, secrets and tenants. A wire is a route that
answers in another platform's format.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from evaluator_host.platform.wires.table import wires
from tests.keyed import make_key
from tests.server import Server
from tests.wires.wired import SECRET, wired


@dataclass(frozen=True)
class Keyed:
    """A host with a key for workspace `team`."""

    server: Server
    key: str
    database: str

    @property
    def url(self) -> str:
        return self.server.url


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A host without keys that serves all wires."""
    with wired(tmp_path_factory.mktemp("wired"), *wires()) as server:
        yield server


@pytest.fixture(scope="session")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """A host with keys, secrets and tenants, where a body may have 64 KB and a row may take one second."""
    folder = tmp_path_factory.mktemp("keyed")
    database = f"sqlite:///{folder / 'host.db'}"
    key = make_key("team", "team", url=database)
    options = {name: {"secret": SECRET, "body_kb": 64, "timeout_s": 1} for name in wires()}
    options["langfuse"]["tenants"] = {"o1/p1": "of-o1", "o2/*": "of-o2"}
    with wired(folder, *wires(), **options) as server:
        yield Keyed(server, key, database)


@pytest.fixture(scope="session")
def saturated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A host with one sandbox, and a queue that holds one call."""
    sizes = {
        "EVALUATOR_HOST_MAX_SANDBOXES": "1",
        "EVALUATOR_HOST_QUEUE_LIMIT": "1",
        "EVALUATOR_HOST_IDLE_SANDBOXES": "0",
    }
    with wired(tmp_path_factory.mktemp("saturated"), *wires(), environment=sizes) as server:
        yield server


@pytest.fixture
def client(host: Server) -> httpx.Client:
    """An HTTP client for the host without keys."""
    return host.client
