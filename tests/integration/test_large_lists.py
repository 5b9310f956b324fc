"""Lists of large objects are sent in parts: they take little memory, and other requests need not wait for them."""

import json
from collections.abc import Iterator

import httpx
import pytest

from evaluator_host.platform.evaluators.table import VersionContent
from evaluator_host.platform.store.store import open_store
from tests.processes import peak_mb, restart_peak
from tests.server import FORKED, Server
from tests.tables import tables

pytestmark = pytest.mark.engine

WORKSPACE, MB, MANY = "default", 1 << 20, 80
MOST_MB = 100  # MB that a list may take; all objects at once would take several times 80 MB


def content(number: int) -> VersionContent:
    code = json.dumps({"code": f"# {number}\n{'x' * MB}"})
    return VersionContent(f"sha256:{number}", code, "evaluate", "declared", None, None, None, "null", None)


@pytest.fixture(scope="module")
async def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("large")
    url = f"sqlite:///{folder / 'host.db'}"
    async with open_store(url, folder) as store:
        evaluators = tables(store).evaluators
        for number in range(MANY):
            await evaluators.create_evaluator(WORKSPACE, f"large-{number:02}", content(number))
            await (evaluators.add_version if number else evaluators.create_evaluator)(
                WORKSPACE, "often", content(number)
            )
    return url


@pytest.fixture(scope="module")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {**FORKED, "EVALUATOR_HOST_DATABASE_URL": database, "EVALUATOR_HOST_WIRES": "webhook"}
    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=environment) as running:
        yield running


def listed(server: Server, path: str) -> httpx.Response:
    """Request a list, check how much memory it took, and return the response."""
    server.client.get("/healthz")
    restart_peak(server.process.pid)
    before = peak_mb(server.process.pid)
    answer = server.client.get(path, timeout=120)
    assert answer.status_code == 200, answer.text[:500]
    assert peak_mb(server.process.pid) - before < MOST_MB
    return answer


@pytest.mark.long("tests/growth has lists of many records")
def test_all_evaluators_are_listed_with_their_code_in_little_memory(server: Server) -> None:
    found = listed(server, "/v1/evaluators").json()
    assert [one["name"] for one in found] == [*(f"large-{number:02}" for number in range(MANY)), "often"]
    assert [one["evaluator"]["code"][:5].split()[1] for one in found[:-1]] == [str(number) for number in range(MANY)]
    assert found[-1]["version"] == found[-1]["latest"] == MANY


@pytest.mark.long
def test_all_versions_are_listed_in_little_memory(server: Server) -> None:
    found = listed(server, "/v1/evaluators/often/versions").json()
    assert [one["version"] for one in found] == list(range(MANY, 0, -1))
    missing = server.client.get("/v1/evaluators/none/versions")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


@pytest.mark.long
def test_names_are_listed_without_the_code(server: Server) -> None:
    assert len(listed(server, "/hooks").json()["evaluators"]) == MANY + 1
    assert server.client.get("/v1/evaluators", params={"tag": "none"}).json() == []
