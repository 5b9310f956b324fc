"""The store finds data sets by name and id, and forgets those that nobody needs, on both databases."""

import asyncio

import pytest
from sqlalchemy import text

from evaluator_host.platform.datasets.table import DatasetTable
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.store.store import Store
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound, StoreUnavailable
from tests.store.records import FACTS, WORKSPACE, dataset, queued
from tests.tables import tables


async def forgotten(store: Store, workspace: str | None = None) -> list[str]:
    gone: list[str] = []
    await tables(store).datasets.forget_unused(workspace, remove=gone.append)
    return gone


async def test_a_data_set_is_found_by_its_name_and_its_id(store: Store) -> None:
    made = await dataset(store, "qa")
    assert (
        await tables(store).datasets.get_dataset(WORKSPACE, "qa")
        == made
        == await tables(store).datasets.get_dataset(WORKSPACE, made.id)
    )
    assert made.facts == FACTS
    assert [part async for part in tables(store).datasets.list_datasets(WORKSPACE)] == [[made]]
    with pytest.raises(NotFound):
        await tables(store).datasets.get_dataset("other", made.id)
    assert [part async for part in tables(store).datasets.list_datasets("other")] == []


async def test_a_name_is_taken_until_it_is_replaced_or_released(store: Store) -> None:
    first = await dataset(store, "qa")
    with pytest.raises(NameTaken, match="replace"):
        await dataset(store, "qa")
    with pytest.raises(InvalidRequest):
        await dataset(store, "../qa")
    second = await tables(store).datasets.add_dataset("ds_2", WORKSPACE, "qa", FACTS, replace=True)
    assert (await tables(store).datasets.get_dataset(WORKSPACE, "qa")).id == second.id
    assert (await tables(store).datasets.get_dataset(WORKSPACE, first.id)).name is None
    await tables(store).datasets.release(WORKSPACE, "qa")
    assert [part async for part in tables(store).datasets.list_datasets(WORKSPACE)] == []
    assert set(await forgotten(store)) == {first.id, second.id}
    assert await tables(store).datasets.ids() == frozenset()


@pytest.mark.sampled(2)
async def test_more_unused_data_sets_than_one_statement_can_name_are_forgotten(store: Store) -> None:
    made = await dataset(store)
    names = [column.name for column in DatasetTable.__table__.columns]
    columns, values = (", ".join(f'"{name}"' for name in names[1:]), "'ds_' || n")
    numbers = "WITH RECURSIVE k (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < 66000)"
    copied = f"INSERT INTO datasets (id, {columns}) {numbers} SELECT {values}, {columns} FROM datasets, k"
    await store.database.change_rows(text(copied))
    assert await forgotten(store, "other") == []
    gone = await forgotten(store)
    assert (len(gone), len(set(gone)), made.id in gone) == (66_001, 66_001, True)


async def test_nobody_waits_for_a_writer_only_to_forget_nothing(store: Store) -> None:
    await queued(store)
    async with asyncio.timeout(10), store.database.transaction():
        assert await forgotten(store) == []


async def test_rows_are_removed_before_more_data_sets_are_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator_host.platform.datasets.table._FORGOTTEN_AT_ONCE", 2)
    made = {(await dataset(store)).id for _ in range(5)}
    removed: list[str] = []

    def remove(dataset_id: str) -> None:
        if len(removed) == 2:
            raise StoreUnavailable("the bucket does not answer")
        removed.append(dataset_id)

    with pytest.raises(StoreUnavailable):
        await tables(store).datasets.forget_unused(remove=remove)
    left = await tables(store).datasets.ids()
    assert (len(left), set(removed) < made - left) == (1, True)


async def test_a_name_that_no_database_takes_is_the_callers_mistake(store: Store) -> None:
    with pytest.raises((NotFound, InvalidRequest)):
        await tables(store).datasets.get_dataset(WORKSPACE, "a\x00b")
    with pytest.raises((NotFound, InvalidRequest)):
        await tables(store).evaluators.get_version(WORKSPACE, "a\x00b", 10**30)
    with pytest.raises(InvalidRequest):
        await tables(store).jobs.list_overviews(WORKSPACE, limit=10**30)


async def test_rows_that_a_job_needs_are_not_forgotten(store: Store) -> None:
    job = await queued(store)
    await dataset(store, "named")
    assert await forgotten(store) == []
    await tables(store).jobs.set_desired_state(WORKSPACE, job.id, DesiredState.CANCEL)
    await tables(store).jobs.delete_job(WORKSPACE, job.id)
    assert await forgotten(store) == [job.dataset_id]
