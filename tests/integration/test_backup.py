"""A running host can be backed up, and its jobs, secrets, data sets and keys can be restored elsewhere, with SQLite and
PostgreSQL.
"""

import json
import os
import sqlite3
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.sandbox.linux.instance import this_instance
from tests import forked
from tests.databases import Databases
from tests.server import COMMAND, Server, new_home

pytestmark = pytest.mark.engine
CODE = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n"
ROWS = "".join(json.dumps({"gold": n % 2, "answer": 0}) + "\n" for n in range(200))


def with_data(digest: str) -> dict[str, Any]:
    code = "def evaluate(inputs, outputs, trace):\n    return open('/opt/data/w').read() == 'weights'\n"
    return {"evaluator": {"code": code, "data": {"w": digest}}, "outputs": ""}


def cli(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ran = forked.run(
        arguments, cwd=Path("/"), env={**os.environ, "EVALUATOR_HOST_DATABASE_URL": "", **environment}, timeout=100
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> list[dict[str, str]]:
    """Environment variables for two hosts: a host to back up, and an empty host."""
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        place = {"EVALUATOR_HOST_DATA_DIR": str(new_home(tmp_path / name)), "EVALUATOR_HOST_DATABASE_URL": ""}
        if request.param == "postgresql":
            place["EVALUATOR_HOST_DATABASE_URL"] = databases.make_empty("postgresql")
        made.append(place)
    return made


def serve(place: dict[str, str], folder: Path) -> Server:
    return Server(log=folder / "log", environment=place, data_dir=Path(place["EVALUATOR_HOST_DATA_DIR"]))


def ended(server: Server, job: str) -> dict[str, Any]:
    until = time.monotonic() + 60
    while (report := server.client.get(f"/v1/jobs/{job}").json())["status"] not in ("completed", "failed"):
        assert time.monotonic() < until
        time.sleep(0.05)
    return dict(report)


def modes(place: dict[str, str], folder: str) -> dict[str, str]:
    """Return the permissions of each file and folder of a data directory."""
    top = Path(place["EVALUATOR_HOST_DATA_DIR"])
    return {str(one.relative_to(top)): oct(one.stat().st_mode) for one in (top / folder).rglob("*")}


def test_a_restored_host_has_everything(places: list[dict[str, str]], tmp_path: Path) -> None:
    first, second = places
    file = tmp_path / "backup.tar"
    with serve(first, tmp_path) as server:
        upload = {"params": {"name": "rows"}, "headers": {"Content-Type": "application/jsonl"}}
        server.client.post("/v1/datasets", content=ROWS, **upload).raise_for_status()  # type: ignore[arg-type]
        server.client.post("/v1/evaluators", json={"name": "exact", "code": CODE}).raise_for_status()
        server.client.put("/v1/secrets/token", json={"value": "a-secret-value"}).raise_for_status()
        given = {"headers": {"Content-Type": "application/octet-stream"}}
        weights = server.client.post("/v1/data", content=b"weights", **given).json()["digest"]
        assert server.client.post("/v1/evaluate", json=with_data(weights)).json()["score"] == 1.0
        left = Path(first["EVALUATOR_HOST_DATA_DIR"]) / "datasets" / f"ds_1.{this_instance()}"
        left.mkdir()
        (left / "upload").write_bytes(b"the beginning of an upload")
        body = {"evaluators": ["exact"], "dataset": "rows", "mapping": {"outputs": "answer"}}
        job = server.client.post("/v1/jobs", json=body).json()["id"]
        ended(server, job)
        statistics = server.client.get(f"/v1/jobs/{job}/results").json()
        made = cli("backup", str(file), **first)  # the backup is made while the host runs
        assert made.returncode == 0, made.stderr
    assert file.stat().st_mode & 0o077 == 0
    assert list(tmp_path.glob("backup.tar.*")) == []
    back = cli("restore", str(file), **second)
    assert back.returncode == 0, back.stderr
    assert modes(second, "datasets") == {
        path: mode for path, mode in modes(first, "datasets").items() if left.name not in path
    }
    with serve(second, tmp_path) as server:
        assert server.client.get(f"/v1/jobs/{job}/results").json() == statistics
        assert [one["name"] for one in server.client.get("/v1/secrets").json()] == ["token"]
        assert [one["digest"] for one in server.client.get("/v1/data").json()] == [weights]
        assert server.client.post("/v1/evaluate", json=with_data(weights)).json()["score"] == 1.0
        again = server.client.post("/v1/jobs", json=body).json()["id"]
        assert ended(server, again)["status"] == "completed", "the backup must contain the data set that the job uses"
        assert server.client.get(f"/v1/jobs/{again}/results").json()["evaluators"][0]["pass_rate"] == 0.5
    twice = cli("restore", str(file), **second)
    assert (twice.returncode, "Choose an empty --data-dir" in " ".join(twice.stderr.split())) == (2, True)
    over = cli("backup", str(file), **second)
    assert (over.returncode, "already exists; choose another file name" in " ".join(over.stderr.split())) == (2, True)


@pytest.mark.long
def test_impossible_backups_and_restores_say_why(tmp_path: Path, databases: Databases) -> None:
    home, data = tmp_path / "home", {"EVALUATOR_HOST_DATA_DIR": str(tmp_path / "home")}
    nothing = cli("backup", str(tmp_path / "b.tar"), **data)
    assert (nothing.returncode, f"no host has stored data in {home}" in " ".join(nothing.stderr.split())) == (
        2,
        True,
    )
    cli("keys", "create", "ci", **data)
    assert cli("backup", str(tmp_path / "b.tar"), **data).returncode == 0
    other = {"EVALUATOR_HOST_DATA_DIR": str(tmp_path / "other")}
    crossed = cli(
        "restore", str(tmp_path / "b.tar"), EVALUATOR_HOST_DATABASE_URL=databases.make_empty("postgresql"), **other
    )
    assert (crossed.returncode, "the backup contains a sqlite database" in " ".join(crossed.stderr.split())) == (
        2,
        True,
    )
    (tmp_path / "junk.tar").write_bytes(b"junk" * 400)
    assert "cannot be restored" in cli("restore", str(tmp_path / "junk.tar"), **other).stderr
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    assert "is not a backup of a host" in cli("restore", str(tmp_path / "empty.tar"), **other).stderr
    link = tarfile.TarInfo("datasets/rows")
    link.type, link.linkname = tarfile.SYMTYPE, "../secrets.key"
    for odd in (link, tarfile.TarInfo("../outside"), tarfile.TarInfo("datasets/../../outside")):
        changed = tmp_path / "changed.tar"
        changed.write_bytes((tmp_path / "b.tar").read_bytes())
        with tarfile.open(changed, "a") as archive:
            archive.addfile(odd)
        refused = cli("restore", str(changed), **other)
        assert refused.returncode == 2
        assert f"{odd.name!r} is neither a file nor a folder of a backup" in " ".join(refused.stderr.split())
    assert not (tmp_path / "outside").exists()
    assert cli("restore", str(tmp_path / "b.tar"), **other).returncode == 0
    assert "ci" in cli("keys", "list", **other).stdout
    assert {path.name for path in (tmp_path / "other").iterdir()}.isdisjoint({"manifest.json", "database"})
    with sqlite3.connect(home / "evaluator-host.db") as database:
        database.execute("UPDATE evaluator_host_revisions SET revision = '9999'")
    assert cli("backup", str(tmp_path / "newer.tar"), **data).returncode == 0
    newer = cli("restore", str(tmp_path / "newer.tar"), EVALUATOR_HOST_DATA_DIR=str(tmp_path / "third"))
    assert (newer.returncode, "a newer Evaluator Host made it" in " ".join(newer.stderr.split())) == (2, True)
    assert not (tmp_path / "third" / "evaluator-host.db").exists()


@pytest.mark.long
@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_killed_command_can_be_repeated(command: str, tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar"
    cli("keys", "create", "ci", EVALUATOR_HOST_DATA_DIR=str(home))
    (home / "datasets" / "ds_1").mkdir(parents=True)
    (home / "datasets" / "ds_1" / "rows.jsonl").write_bytes(b"x" * (64 << 20))
    place = {"EVALUATOR_HOST_DATA_DIR": str(home if command == "backup" else other)}
    if command == "restore":
        assert cli("backup", str(file), EVALUATOR_HOST_DATA_DIR=str(home)).returncode == 0
    folder = tmp_path if command == "backup" else other
    environment = {**os.environ, "EVALUATOR_HOST_DATABASE_URL": "", **place}
    process = subprocess.Popen([*COMMAND, command, str(file)], env=environment, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not (found := list(folder.glob(f"evaluator-host-{command}-*/*"))):
        assert time.monotonic() < until
        assert process.poll() is None
    process.kill()
    process.wait()
    assert found[0].parent.is_dir()
    assert cli(command, str(file), **place).returncode == 0
    assert list(folder.glob("evaluator-host-*-*")) == []
    if command == "restore":
        assert "ci" in cli("keys", "list", **place).stdout
        assert (other / "datasets" / "ds_1" / "rows.jsonl").stat().st_size == 64 << 20


def test_a_restore_that_fails_leaves_no_rows_without_their_database(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar"
    cli("keys", "create", "ci", EVALUATOR_HOST_DATA_DIR=str(home))
    (home / "datasets" / "ds_1").mkdir(parents=True)
    assert cli("backup", str(file), EVALUATOR_HOST_DATA_DIR=str(home)).returncode == 0
    other.mkdir()
    (other / "evaluator-host.db").touch()
    failed = cli("restore", str(file), EVALUATOR_HOST_DATA_DIR=str(other))
    assert (failed.returncode, "there is already a database" in " ".join(failed.stderr.split())) == (2, True)
    assert [path.name for path in other.iterdir()] == ["evaluator-host.db"]
