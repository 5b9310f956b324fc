"""A database has a random name, which never changes and which its copies share. Reading a database does not change it."""

import asyncio
import shutil
from pathlib import Path

import pytest

from evaluator_host.platform.store import schema
from evaluator_host.platform.store.database import address
from evaluator_host.platform.store.schema import migrate
from evaluator_host.platform.store.store import open_read_only, open_store
from evaluator_host.types.errors import StoreUnavailable
from tests.databases import EACH_ENGINE, Databases


async def identity(url: str, folder: Path) -> str:
    async with open_store(url, folder) as store:
        return await store.identity()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", EACH_ENGINE)
async def test_no_two_databases_have_the_same_name_and_each_keeps_its_own(
    engine: str, databases: Databases, tmp_path: Path
) -> None:
    urls = [databases.make_empty(engine) for _ in range(3)]
    first = [await identity(url, tmp_path) for url in urls]
    assert len(set(first)) == 3
    assert first == [await identity(url, tmp_path) for url in urls]


async def test_hosts_that_start_at_once_agree_on_it(empty_database_url: str, tmp_path: Path) -> None:
    where = address(empty_database_url, tmp_path)
    await asyncio.gather(*(asyncio.to_thread(migrate, where) for _ in range(4)))
    assert len({await identity(empty_database_url, tmp_path) for _ in range(2)}) == 1


async def test_a_restored_copy_has_the_same_name(databases: Databases, tmp_path: Path) -> None:
    file = Path(databases.make_empty("sqlite").removeprefix("sqlite:///"))
    before = await identity(f"sqlite:///{file}", tmp_path)
    shutil.move(file, tmp_path / "kept.db")
    assert await identity(f"sqlite:///{file}", tmp_path) != before
    shutil.copy(tmp_path / "kept.db", file)
    assert await identity(f"sqlite:///{file}", tmp_path) == before


@pytest.mark.sampled(2)
async def test_looking_makes_no_database_and_no_tables(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = address(empty_database_url, tmp_path)
    async with open_read_only(empty_database_url, tmp_path) as store:
        assert store is None
    assert where.file is None or not where.file.exists()

    migrate(where)
    with monkeypatch.context() as later:
        later.setattr(schema, "migrations_of", lambda _: (Path("r0002_later.py"),))
        for _ in range(2):
            async with open_read_only(empty_database_url, tmp_path) as store:
                assert store is None, "the database must not be opened, because it has an older version"
    named = await identity(empty_database_url, tmp_path)
    async with open_read_only(empty_database_url, tmp_path) as store:
        assert store is not None
        assert await store.identity() == named


async def test_a_database_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        async with open_read_only(f"postgresql://nobody@/none?host={tmp_path}", tmp_path):
            pass
