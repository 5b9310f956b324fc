"""NeMo's client can store large objects, which count against the quota; lists of them are limited in size and do not
block the event loop.
"""

import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.platform.store.store import Store
from evaluator_host.platform.store.usage import Quota, StorageUsage
from evaluator_host.types.errors import InvalidRequest, OverQuota
from evaluator_host.vendors.nemo.bundles import checked
from evaluator_host.vendors.nemo.entities import Entities, Entity, EntityKind, Order, Place
from evaluator_host.vendors.nemo.filters import every
from evaluator_host.vendors.nemo.names import page_kept
from evaluator_host.vendors.nemo.namespaces import Namespaces
from tests.databases import opened_store
from tests.loop_watch import watching

MB = 1 << 20
PLACE = Place("default", EntityKind.METRIC, "default")
MANY = 32
HELD_S = 0.4  # maximum processor seconds of a callback; reading all objects at once would take over a second


@pytest.fixture
async def store(database_url: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(database_url, tmp_path) as opened:
        yield opened


def name_of(entity: Entity) -> str:
    return entity.name


def content_of(entity: Entity) -> dict[str, Any]:
    return entity.content


def shown_of(entity: Entity) -> dict[str, Any]:
    return {"name": entity.name, **entity.content}


@pytest.mark.long
async def test_large_objects_are_read_one_by_one_off_the_loop(store: Store) -> None:
    entities = Entities(store.database, store.usage)
    large = {"values": [{} for _ in range(MB // 4)]}
    with watching() as watch:
        for number in range(MANY):
            await entities.add_entity(PLACE, f"m{number:02}", large)
        names, total = await entities.page(PLACE, name_of, order=Order.NAME, first=1, limit=MANY)
        assert (names, total) == ([f"m{number:02}" for number in range(1, MANY)], MANY)
        assert await entities.find_entity(PLACE, "m01") is not None
        with pytest.raises(InvalidRequest, match="smaller page_size"):
            await entities.page(PLACE, content_of, order=Order.NAME, first=0, limit=MANY)
        one, _ = await entities.page(PLACE, content_of, order=Order.NAME, first=0, limit=1)
        assert one == [large]
    assert watch.longest_s < HELD_S, watch.longest


async def test_a_filter_reads_large_objects_in_smaller_pages(store: Store) -> None:
    entities = Entities(store.database, store.usage)
    for number in range(MANY):
        await entities.add_entity(PLACE, f"m{number:02}", {"text": "x" * MB})
    fetch = partial(page_kept, entities, PLACE, shown_of, order=Order.NAME)
    kept, _ = await every(fetch, lambda one: one["name"] != "m20")
    assert [one["name"] for one in kept] == [f"m{number:02}" for number in range(MANY) if number != 20]


async def test_objects_count_against_the_quota(store: Store) -> None:
    usage = StorageUsage(store.database, Quota(workspace_bytes=MB))
    entities = Entities(store.database, usage)
    await entities.add_entity(PLACE, "small", {"text": "x" * 1000})
    for number in range(2):
        with pytest.raises(OverQuota):
            await entities.add_entity(PLACE, f"large{number}", {"text": "x" * MB})
        with pytest.raises(OverQuota):
            await entities.change(PLACE, "small", {"text": "x" * MB})
    assert await entities.find_entity(PLACE, "large0") is None


async def test_every_namespace_is_on_one_page(store: Store) -> None:
    namespaces = Namespaces(Entities(store.database, store.usage))
    for name in ("b", "z", "a"):
        await namespaces.create("default", name, None)
    for size in (1, 2, 3, 4, 5):
        pages = [await namespaces.all("default", number=number, size=size) for number in range(1, -(-4 // size) + 1)]
        assert [one["name"] for page in pages for one in page["data"]] == ["default", "a", "b", "z"]
        assert all(page["pagination"]["total_results"] == 4 for page in pages)


def test_many_outputs_of_a_metric_are_compared_in_linear_time() -> None:
    outputs = [{"name": f"o{number}"} for number in range(20_000)]
    payload = {"kind": "inline", "metric": {"type": "exact-match", "reference": "{{item.gold}}"}}
    bundle, began = {"metric_type": "m", "outputs": outputs, "payload": payload}, time.process_time()
    checked(bundle, field="metric")
    with pytest.raises(InvalidRequest, match="same name"):
        checked({**bundle, "outputs": [*outputs, {"name": "o7"}]}, field="metric")
    assert time.process_time() - began < 1
