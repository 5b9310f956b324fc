"""The host removes from its data directory all files to which no record refers, unless another database may have a
record that refers to them.
"""

import asyncio
import json
import logging
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from evaluator_host.client import Client
from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.platform.datasets.opening import orphan_files
from evaluator_host.platform.datasets.service import DatasetService
from evaluator_host.platform.datasets.table import new_dataset_id
from evaluator_host.platform.findings import database_findings
from evaluator_host.platform.store.store import open_store
from evaluator_host.types.errors import NameTaken, StoreUnavailable
from evaluator_host.types.formats import Format
from evaluator_host.vendors.nemo.blobs import BlobFolder
from evaluator_host.vendors.nemo.entities import Entities, EntityKind, Place
from tests.databases import ENGINES, Databases
from tests.jobs.desk import ON_EACH_DATABASE
from tests.keyed import eventually
from tests.server import Server, new_home
from tests.tables import tables

ROWS = [{"n": n} for n in range(3)]
FILES = "/apis/files/v2/workspaces/default/filesets"


class Home:
    """A data directory, with functions that store files and remove unused files, as hosts with several databases do."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.orphans = orphan_files(Settings(data_dir=folder))

    async def host(self, url: str) -> None:
        """Start a host, which removes unused files from the directory."""
        async with open_store(url, self.path) as store:
            await self.orphans.sweep(store)

    async def keep(self, url: str) -> set[str]:
        """Store a data set and a data file, and return their ids."""
        async with open_store(url, self.path) as store:
            dataset = new_dataset_id()
            facts = self.orphans.rows.write(dataset, enumerate(ROWS), format_="jsonl", max_bytes=1 << 20)
            await tables(store).datasets.add_dataset(dataset, "default", dataset, facts)
            blob = await self.file_alone()
            await Entities(store.database, store.usage).add_entity(
                Place("default", EntityKind.FILE, "default"), blob, {"blob": blob}
            )
        return {dataset, blob}

    def rows_alone(self) -> str:
        """Write the rows of a data set of which no database has a record."""
        made = new_dataset_id()
        self.orphans.rows.write(made, enumerate(ROWS), format_="jsonl", max_bytes=1 << 20)
        return made

    async def file_alone(self) -> str:
        """Write a data file of which no database has a record."""
        return (await BlobFolder(self.orphans.blobs.path, max_bytes=1 << 20).receive(_chunks())).id

    def there(self) -> set[str]:
        return {path.name for name in ("datasets", "filesets") for path in (self.path / name).iterdir()}

    def notes(self) -> set[str]:
        return {path.name for path in (self.path / "databases").iterdir()}

    def age(self) -> None:
        age(self.path)

    async def doctor(self, url: str | None = None) -> Finding:
        settings = Settings(data_dir=self.path, database_url=SecretStr(url) if url else None)
        return [one for one in await database_findings(settings) if one.name != "secrets"][-1]


async def _chunks() -> AsyncIterator[bytes]:
    yield b"one file"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def other_url(request: pytest.FixtureRequest, database_url: str, databases: Databases) -> str:
    """A database of the other kind."""
    return databases.make(next(engine for engine in ENGINES if not database_url.startswith(engine)))


async def test_a_host_removes_what_its_database_does_not_know(home: Home, database_url: str) -> None:
    await home.host(database_url)
    known = await home.keep(database_url)
    home.rows_alone()
    await home.file_alone()
    home.age()
    young = {home.rows_alone(), await home.file_alone()}
    await home.host(database_url)
    assert home.there() == known | young
    found = await home.doctor(database_url)
    assert found.ok, found.detail


@pytest.mark.long
@pytest.mark.engine
@ON_EACH_DATABASE
async def test_hosts_of_two_databases_leave_each_other_everything(
    home: Home, database_url: str, other_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await home.host(database_url)
    kept = await home.keep(database_url) | {home.rows_alone(), await home.file_alone()}
    (home.path / "datasets" / f"ds_9.{_dead()}").mkdir()
    kept |= {f"ds_9.{_dead()}"}
    home.age()
    assert "other databases" not in caplog.text
    with caplog.at_level(logging.WARNING):
        await home.host(other_url)
    assert [record.message.count("doctor") for record in caplog.records] == [1]
    assert home.there() == kept
    kept |= await home.keep(other_url)
    home.age()
    for url in (database_url, other_url):
        await home.host(url)
        assert home.there() == kept, "the files of the second database must stay too"


@pytest.mark.engine
async def test_unused_files_are_removed_although_another_database_shares_the_directory(
    home: Home, database_url: str, other_url: str
) -> None:
    await home.host(database_url)
    kept = await home.keep(database_url)
    await home.host(other_url)
    kept |= (own := await home.keep(other_url))
    (dataset,) = (one for one in own if one.startswith("ds_"))
    async with open_store(other_url, home.path) as store:
        await tables(store).datasets.release("default", dataset)
    await home.host(other_url)
    assert home.there() == kept - {dataset}


@pytest.mark.long
@pytest.mark.engine
async def test_doctor_says_what_is_unknown_and_what_to_do(home: Home, database_url: str, other_url: str) -> None:
    assert (await home.doctor(database_url)).ok, "in an empty directory, doctor must find nothing wrong"
    await home.host(database_url)
    kept = await home.keep(database_url)
    before = await home.doctor(other_url)
    await home.host(other_url)
    after = await home.doctor(other_url)
    for found in (before, after):
        assert not found.ok
        assert re.search(r"1 data set and 1 file \([1-9][0-9]* B\)", found.detail)
        assert "@" not in database_url or "postgresql+psycopg://host@" in found.detail, (
            "the finding must name the server of the other database"
        )
        assert found.fix is not None
        assert str(home.path / "databases") in found.fix
    assert "0 data sets and 0 files" in (await home.doctor(database_url)).detail

    async with open_store(other_url, home.path) as store:
        (home.path / "databases" / await store.identity()).unlink()
    home.rows_alone()
    home.age()
    await home.host(database_url)
    assert home.there() == kept
    assert (await home.doctor(database_url)).ok


async def test_doctor_says_that_rows_are_in_the_data_directory_of_another_host(
    home: Home, database_url: str, tmp_path: Path
) -> None:
    await home.host(database_url)
    await home.keep(database_url)
    found = await Home(tmp_path / "another").doctor(database_url)
    assert not found.ok
    assert "the rows of 1 data set of " in found.detail
    assert (
        f"are not in {tmp_path / 'another'}: jobs that use these data sets wait for the host that has the rows"
        in found.detail
    )
    assert "share their data directory or EVALUATOR_HOST_STORAGE_URL" in str(found.fix)


async def test_rows_of_a_removed_sqlite_file_stay_until_their_note_goes(home: Home) -> None:
    file = home.path / "evaluator-host.db"
    await home.host(f"sqlite:///{file}")
    kept = await home.keep(f"sqlite:///{file}")
    home.age()
    (old,) = home.notes()
    for path in home.path.glob("evaluator-host.db*"):
        path.unlink()
    assert not (await home.doctor()).ok
    assert not file.exists(), "doctor must not create a file"
    await home.host(f"sqlite:///{file}")
    assert home.there() == kept
    assert f"{old}: {file}" in (await home.doctor()).detail
    (home.path / "databases" / old).unlink()
    await home.host(f"sqlite:///{file}")
    assert home.there() == set()


async def test_a_directory_from_before_is_its_databases_where_that_knows_all(home: Home, database_url: str) -> None:
    kept = await home.keep(database_url)
    await home.host(database_url)
    assert len(home.notes()) == 1
    home.rows_alone()
    home.age()
    await home.host(database_url)
    assert home.there() == kept


@pytest.mark.long
@pytest.mark.engine
async def test_unknown_files_in_an_older_directory_stay(home: Home, database_url: str, other_url: str) -> None:
    kept = await home.keep(database_url) | await home.keep(other_url)
    home.age()
    for url in (database_url, other_url, database_url):
        await home.host(url)
        assert home.there() == kept
        assert "unknown" in home.notes()
    assert "unknown: used before databases were noted" in (await home.doctor(database_url)).detail


@pytest.mark.engine
async def test_databases_that_start_at_once_are_both_noted(home: Home, database_url: str, other_url: str) -> None:
    async with open_store(database_url, home.path) as one, open_store(other_url, home.path) as other:
        await asyncio.gather(*(home.orphans.sweep(store) for store in (one, other, one, other)))
        assert home.notes() == {await one.identity(), await other.identity()}


async def test_where_no_note_can_be_written_everything_stays(
    home: Home, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await home.host(database_url)
    kept = {home.rows_alone(), await home.file_alone()}
    home.age()
    shutil.rmtree(home.path / "databases")
    (home.path / "databases").write_text("in the way")
    await home.host(database_url)
    assert home.there() == kept
    assert str(home.path / "databases") in caplog.text


def serving(home: Path, url: str, log: str) -> Server:
    return Server(data_dir=home, log=home.parent / log, environment={"EVALUATOR_HOST_DATABASE_URL": url})


@pytest.mark.long
@pytest.mark.engine
def test_a_running_host_removes_files_that_were_too_new_at_its_start(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    often = "from evaluator_host.platform.datasets import resource\nresource._SWEEP_EVERY_S = 0.2"
    left = home / "datasets" / "ds_9"
    left.mkdir(parents=True)
    environment = {"EVALUATOR_HOST_DATABASE_URL": ""}
    with Server(data_dir=home, log=tmp_path / "log", environment=environment, program=often):
        (home / "databases" / "unknown").unlink()  # the host cannot know that nobody else wrote the folder
        assert left.is_dir()
        os.utime(left, (0, 0))
        eventually(lambda: not left.exists())


@pytest.mark.long
@pytest.mark.engine
def test_a_host_on_the_data_of_another_database_loses_none(database_url: str, other_url: str, tmp_path: Path) -> None:
    home = new_home(tmp_path)
    with serving(home, database_url, "first") as host, Client(host.url) as client:
        client.datasets.upload("numbers", ROWS)
        assert host.client.post(FILES, json={"name": "kept"}).status_code == 201
        assert host.client.put(f"{FILES}/kept/-/rows.jsonl", content=b'{"a": 1}\n').status_code == 200
        assert "other databases" not in host.log
    age(home)
    with serving(home, other_url, "second") as host, Client(host.url) as client:
        assert client.datasets.all() == []
        client.datasets.upload("numbers", [{"n": 7}])
        assert host.log.count("other databases use") == 1
    age(home)
    with serving(home, database_url, "third") as host, Client(host.url) as client:
        assert host.client.get("/v1/datasets/numbers/rows").json() == ROWS
        assert host.client.get(f"{FILES}/kept/-/rows.jsonl").text == '{"a": 1}\n'
    with serving(home, other_url, "fourth") as host:
        assert host.client.get("/v1/datasets/numbers/rows").json() == [{"n": 7}]


def age(home: Path) -> None:
    """Make the files of all data sets and filesets look two hours older."""
    for path in home.glob("*sets/*"):
        os.utime(path, (path.stat().st_mtime - 7200,) * 2)


def _dead() -> str:
    return f"{this_instance().rpartition('-')[0]}-1"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "ends", [StoreUnavailable("the answer was lost"), asyncio.CancelledError()], ids=["lost", "left"]
)
@pytest.mark.slow
async def test_an_upload_keeps_its_rows_although_its_caller_does_not_learn_of_it(
    database_url: str, tmp_path: Path, ends: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that was stored keeps its rows although its caller does not learn this. The connection or the caller
    ends while the database commits, so the host does not know whether the commit succeeded.
    """
    processes, most = LimitedProcesses(), 1 << 20
    async with open_store(database_url, tmp_path) as store:
        folder = orphan_files(Settings(data_dir=tmp_path)).rows
        datasets = DatasetService(
            tables(store).datasets, folder, processes, store.usage, max_bytes=most, max_row_bytes=most
        )
        add = tables(store).datasets.add_dataset

        async def added(*args: Any, **options: Any) -> None:
            await add(*args, **options)
            raise ends

        monkeypatch.setattr(tables(store).datasets, "add_dataset", added)
        with pytest.raises(type(ends)):
            await datasets.add_dataset("default", "kept", _lines(), Format.JSONL)
        assert b"".join(await datasets.rows_json("default", "kept", 0, limit=5)).count(b'"n"') == len(ROWS)

        async def refused(*_: Any, **__: Any) -> None:
            raise NameTaken("somebody was first")

        monkeypatch.setattr(tables(store).datasets, "add_dataset", refused)
        with pytest.raises(NameTaken):
            await datasets.add_dataset("default", "another", _lines(), Format.JSONL)
        assert len(list(folder.ids())) == 1, "rows that were certainly not stored must be removed"
    await processes.close()


async def _lines() -> AsyncIterator[bytes]:
    for row in ROWS:
        yield json.dumps(row).encode() + b"\n"
