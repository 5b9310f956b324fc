"""Rows in S3-compatible storage work with a real HTTP server: ranges of rows, copies, and two hosts without a shared
folder.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from evaluator_host.client import Client
from evaluator_host.platform.datasets import object_rows
from evaluator_host.platform.datasets.object_rows import ObjectRows
from evaluator_host.types.errors import Misconfigured, StoreUnavailable
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobStatus
from tests.databases import Databases
from tests.server import Server, new_home

URL = "s3://rows/team/one"
ROWS = 1000

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Run an S3 server with an empty bucket; yield the environment variables with which programs find the bucket."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - the import takes a second, and only these tests need it

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    httpx.put(f"http://127.0.0.1:{port}/rows", timeout=120).raise_for_status()
    with pytest.MonkeyPatch.context() as patched:
        found = {
            "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true",
        }  # fmt: skip
        for name, value in found.items():
            patched.setenv(name, value)
        yield found
    server.stop()


def kept(folder: ObjectRows, dataset_id: str) -> None:
    records = enumerate(({"n": n, "text": "x" * (n % 50)} for n in range(ROWS)), start=1)
    folder.write(dataset_id, records, format_="jsonl", max_bytes=1 << 20)


@pytest.mark.long
@pytest.mark.parametrize("cached_bytes", [64 << 20, 0])
def test_rows_are_those_of_the_upload_wherever_they_are_read(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached_bytes: int
) -> None:
    monkeypatch.setattr(object_rows, "_CACHED_BYTES", cached_bytes)
    monkeypatch.setattr(object_rows, "_RANGE_BYTES", 1000)
    first, other = ObjectRows(tmp_path / "first", URL), ObjectRows(tmp_path / "other", URL)
    name = f"ds_{cached_bytes}"
    kept(first, name)
    due = list(first.rows(name))
    assert [row["n"] for _, row in due] == list(range(ROWS))
    assert list(other.rows(name, first=777)) == due[777:]
    assert other.ids() == ([name] if cached_bytes else [])
    assert list(other.rows(name)) == due
    assert other.some(name, [3, 500, 999]) == {number: due[number][1] for number in (3, 500, 999)}
    assert [json.loads(line)["n"] for line in other.page(name, 990, limit=50)] == list(range(990, ROWS))
    assert list(other.rows(name, first=ROWS + 100)) == []
    assert other.has_rows(name)
    assert other.file(name).read_bytes() == first.file(name).read_bytes()
    with pytest.raises(StoreUnavailable, match="already exists"):
        kept(other, name)
    other.remove(name)
    third = ObjectRows(tmp_path / "third", URL)
    assert not third.has_rows(name)
    with pytest.raises(StoreUnavailable, match="does not work"):
        list(third.rows(name))


def test_an_invalid_or_silent_address_is_reported(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Misconfigured, match="STORAGE_URL"):
        ObjectRows(tmp_path, "no address")
    with pytest.raises(StoreUnavailable, match="does not work"):
        list(ObjectRows(tmp_path, "s3://no-such-bucket").rows("ds_1"))


def test_a_storage_that_is_silent_is_asked_once(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timedelta(seconds=30) > object_rows._AGAIN_WITHIN, (
        "retries must end before the 30 s after which a request fails; otherwise a silent storage is asked again"
    )
    monkeypatch.setattr(object_rows, "_AGAIN_WITHIN", timedelta(seconds=0.5))
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_TIMEOUT", "1 second")
        with pytest.raises(StoreUnavailable, match="does not work"):
            list(ObjectRows(tmp_path, URL).rows("ds_1"))
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.long
def test_a_host_scores_rows_that_another_host_took(
    environment: dict[str, str], databases: Databases, tmp_path: Path
) -> None:
    variables = {**environment, "EVALUATOR_HOST_DATABASE_URL": databases.make("postgresql"),
                 "EVALUATOR_HOST_STORAGE_URL": f"{URL}/hosts"}  # fmt: skip
    servers = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        home = new_home(tmp_path / name)
        servers.append(Server(data_dir=home, log=tmp_path / f"{name}.log", environment=variables))
    first, second = servers
    files = "/apis/files/v2/workspaces/default/filesets"
    with first, Client(first.url) as client:
        first.client.post(files, json={"name": "kept"}).raise_for_status()
        first.client.put(f"{files}/kept/-/a/one.txt", content=b"as it was").raise_for_status()
        client.datasets.upload("numbers", ({"n": n, "outputs": n} for n in range(ROWS)))
    code = f"def evaluate(inputs, outputs, trace):\n    return outputs / {ROWS}"
    with second, Client(second.url) as client:  # from here on the first host has ended, and its disk is gone
        assert second.client.get(f"{files}/kept/-/a/one.txt").content == b"as it was"
        second.client.delete(f"{files}/kept").raise_for_status()
        job = client.jobs.create([Evaluator(code)], "numbers", isolation=Isolation.BATCH)
        ended = client.jobs.wait(job.id)
        assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, ROWS, 0)
        assert len(second.client.get("/v1/datasets/numbers/rows", params={"limit": 5}).json()) == 5
