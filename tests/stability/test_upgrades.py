"""This version restores the backups of each release since 1.0.0, with both databases, and can use the stored data."""

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.client import Client
from tests.databases import Databases
from tests.keyed import bearer
from tests.server import Server
from tests.stability.kept import CODE, FOLDER, JOB, SECRET, command, ended, place, read_all, serve

BACKUPS = sorted(FOLDER.glob("*.tar.xz"))
pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def restored(backup: Path, folder: Path, databases: Databases) -> dict[str, str]:
    """Restore a backup, and return environment variables for a host with the backup's content."""
    file = folder.with_suffix(".tar")
    file.write_bytes(lzma.decompress(backup.read_bytes()))
    engine = backup.name.split("-")[1].partition(".")[0]
    where = place(folder, databases.make_empty(engine))
    command("restore", str(file), **where)
    return where


def known(answer: Any, earlier: Any) -> Any:
    """Return an answer without fields that the earlier version did not have."""
    if isinstance(answer, dict) and isinstance(earlier, dict):
        return {key: known(value, earlier[key]) for key, value in answer.items() if key in earlier}
    if isinstance(answer, list) and isinstance(earlier, list):
        return [known(*pair) for pair in zip(answer, earlier, strict=True)]
    return answer


def check(server: Server, kept: dict[str, Any]) -> None:
    with httpx.Client(base_url=server.url, headers=bearer(kept["key"]), timeout=60) as client:
        _check(server, kept, client)


def _check(server: Server, kept: dict[str, Any], client: httpx.Client) -> None:
    assert httpx.get(f"{server.url}/v1/jobs").status_code == 401, "the restored host must have its keys"
    found = client.get("/v1/evaluators/exact").json()
    assert (found["version"], found["evaluator"]["code"]) == (2, CODE)
    assert client.get("/v1/evaluators/exact/versions/1").json()["version"] == 1
    results = client.get(f"/v1/jobs/{kept['job']}/results").json()
    assert known(results, kept["results"]) == kept["results"]
    # a client of the earlier release still finds all fields that it knows
    for path, earlier in kept["answers"].items():
        assert lacks(client.get(path).json(), earlier, path) == []
    scored = client.post("/v1/evaluate", json={"evaluator": "secret", "inputs": {}, "outputs": "a"}).json()
    assert scored["score"] == len(SECRET), scored
    client.post(f"/v1/jobs/{kept['under_way']}/resume").raise_for_status()
    ended(client, kept["under_way"])
    assert client.get(f"/v1/jobs/{kept['under_way']}").json()["progress"]["done"] == 200
    again = client.post("/v1/jobs", json=JOB).json()["id"]
    ended(client, again)
    assert client.get(f"/v1/jobs/{again}/results").json()["evaluators"][0]["pass_rate"] == 0.5
    assert [one["name"] for one in client.get("/v1/schedules").json()] == ["yearly"]
    client.post("/v1/schedules/yearly/run").raise_for_status()
    assert [one["rule"]["schedule"] for one in client.get("/v1/alerts").json()] == ["yearly"]
    assert [one["name"] for one in client.get("/v1/label-queues").json()] == ["queue"]


def lacks(answer: Any, earlier: Any, where: str) -> list[str]:
    """Return the fields of an earlier version's answer that are missing in this answer."""
    if isinstance(earlier, list) and isinstance(answer, list):
        pairs = zip(answer[:1], earlier[:1], strict=False)
        return [name for pair in pairs for name in lacks(*pair, f"{where}[]")]
    if not isinstance(earlier, dict) or not isinstance(answer, dict):
        return []
    missing = [f"{where}.{name}" for name in earlier.keys() - answer.keys()]
    return missing + [one for name in earlier if name in answer for one in lacks(answer[name], earlier[name], name)]


@pytest.mark.parametrize("backup", BACKUPS, ids=lambda path: path.name)
def test_this_client_reads_what_hosts_of_earlier_releases_answered(backup: Path) -> None:
    kept = json.loads(backup.with_name(backup.name.replace(".tar.xz", ".json")).read_text())

    def answered(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=kept["answers"][request.url.raw_path.decode()])

    with Client("http://earlier.example") as client:
        client._transport.http = httpx.Client(
            base_url="http://earlier.example", transport=httpx.MockTransport(answered)
        )
        read_all(client, kept["job"])


def test_each_database_has_a_backup() -> None:
    assert {backup.name.split("-")[1] for backup in BACKUPS} == {"sqlite.tar.xz", "postgresql.tar.xz"}


def _cases() -> Iterator[object]:
    for path in BACKUPS:
        yield pytest.param(path, id=path.name, marks=[pytest.mark.long] if "postgresql" in path.name else [])


@pytest.mark.long
@pytest.mark.parametrize("backup", list(_cases()))
def test_a_host_of_an_earlier_release_goes_on(backup: Path, tmp_path: Path, databases: Databases) -> None:
    kept = json.loads(backup.with_name(backup.name.replace(".tar.xz", ".json")).read_text())
    upgraded = restored(backup, tmp_path / "upgraded", databases)
    with serve(upgraded, tmp_path) as server:
        check(server, kept)
