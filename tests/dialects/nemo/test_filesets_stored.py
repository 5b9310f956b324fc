"""NeMo's filesets in the database: if a fileset is deleted, its files are deleted too, even files that
arrive during the deletion.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from evaluator_host.types.errors import HostError, NotFound
from evaluator_host.vendors.nemo.blobs import BlobFolder
from evaluator_host.vendors.nemo.entities import Entities, EntityKind, Place, stored_files
from evaluator_host.vendors.nemo.filesets import Filesets
from evaluator_host.vendors.nemo.metrics import NemoMetrics
from evaluator_host.vendors.nemo.namespaces import Namespaces
from tests.databases import opened_store

SET = ("default", "default", "rows")


class Blobs(BlobFolder):
    """A folder from which the host cannot remove a fileset's first file, as if the host had ended too early."""

    removed = 0

    def remove(self, blob_id: str) -> None:
        self.removed += 1
        if self.removed == 1:
            raise OSError(blob_id)
        super().remove(blob_id)


@pytest.fixture
async def entities(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[Entities, Filesets]]:
    async with opened_store(database_url, tmp_path) as store:
        made = Entities(store.database, store.usage)
        yield made, Filesets(made, Blobs(tmp_path / "blobs", max_bytes=1 << 20), store.usage)


async def chunks(meanwhile: Callable[[], Awaitable[object]]) -> AsyncIterator[bytes]:
    yield b"{}"
    await meanwhile()


async def nothing() -> None:
    pass


@pytest.mark.parametrize("again", [False, True])
async def test_a_file_does_not_outlive_its_fileset(entities: tuple[Entities, Filesets], *, again: bool) -> None:
    _, filesets = entities
    await filesets.create(*SET, {})
    await filesets.upload(*SET, "first.jsonl", chunks=chunks(nothing))
    before = (await filesets.files(*SET))[0]

    async def deleted() -> None:
        with pytest.raises(OSError, match="file_"):
            await filesets.delete(*SET)
        if again:
            await filesets.create(*SET, {})

    with pytest.raises(NotFound, match="was deleted meanwhile"):
        await filesets.upload(*SET, "late.jsonl", chunks=chunks(deleted))
    if not again:
        await filesets.create(*SET, {})
    assert await filesets.files(*SET) == []
    await filesets.upload(*SET, "first.jsonl", chunks=chunks(nothing))
    assert (await filesets.files(*SET))[0]["created_at"] > before["created_at"]


async def test_a_file_that_is_replaced_keeps_the_time_of_its_creation(entities: tuple[Entities, Filesets]) -> None:
    made, filesets = entities
    await filesets.create(*SET, {})
    first = await filesets.upload(*SET, "a.jsonl", chunks=chunks(nothing))
    with pytest.raises(OSError, match="file_"):  # the earlier content of the file cannot be removed
        await filesets.upload(*SET, "a.jsonl", chunks=chunks(nothing))
    assert await filesets.files(*SET) == [first]
    assert len(await stored_files(made._database)) == 1


async def test_an_object_does_not_outlive_its_namespace(entities: tuple[Entities, Filesets]) -> None:
    made, filesets = entities
    namespaces, metrics = Namespaces(made), NemoMetrics(made)
    bundle = {"metric_type": "m", "outputs": [], "payload": {"kind": "inline", "metric": {"type": "bleu"}}}
    for number in range(20):
        name = f"n{number}"
        await namespaces.create("default", name, None)
        ended = await asyncio.gather(
            filesets.create("default", name, "f", {}),
            metrics.create("default", name, "m", bundle, None),
            namespaces.delete("default", name),
            return_exceptions=True,
        )
        assert all(isinstance(one, HostError | dict | None) for one in ended), ended
        kept = [
            await made.find_entity(Place("default", kind, name), kind[0])
            for kind in (EntityKind.FILESET, EntityKind.METRIC)
        ]
        there = await made.find_entity(Place("default", EntityKind.WORKSPACE, ""), name)
        assert there is not None or kept == [None, None], ended
