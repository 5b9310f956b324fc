"""Evaluators stay warm as long as the memory allows: an idle sandbox takes up only the memory that it uses, and
the least used sandboxes end first.
"""

import asyncio
import random
from collections import OrderedDict
from dataclasses import replace

import pytest

from evaluator_host.engine.pool import Lease, Pool
from tests.unit.pools import SPEC, leased, opened, request, until

LIMIT_MB = SPEC.memory_mb


async def use(pool: Pool, digest: str, *, workspace: str = "w") -> bool:
    """Call an evaluator once; return whether it was warm."""
    lease = await leased(pool, request(digest, workspace=workspace))
    pool.release(lease)
    return lease.warm


async def test_idle_sandboxes_count_by_what_they_use() -> None:
    async with opened(max_sandboxes=100, memory_mb=2 * LIMIT_MB) as (pool, backend):
        backend.used_mb = 4
        for digest in map(str, range(60)):
            assert not await use(pool, digest)
        assert all([await use(pool, digest) for digest in map(str, range(60))])
        assert (pool.capacity.taken_mb, pool.capacity.running_mb) == (240, 0)
        held = await leased(pool, request("0"))
        assert pool.capacity.taken_mb == 59 * 4 + LIMIT_MB
        pool.release(held)


async def test_a_warm_sandbox_waits_for_memory_to_run_in_and_is_the_same_one_then() -> None:
    async with opened(max_sandboxes=100, memory_mb=2 * LIMIT_MB + 50, max_per_evaluator=1) as (pool, backend):
        backend.used_mb = 4
        for digest in "abc":
            await use(pool, digest)
        held = [await leased(pool, request(digest)) for digest in "ab"]
        third = asyncio.create_task(leased(pool, request("c")))
        await asyncio.sleep(0.01)
        assert not third.done(), "the third sandbox must wait, because the memory is enough for the limits of two"
        pool.release(held[0])
        lease = await asyncio.wait_for(third, 5)
        assert lease.warm
        assert pool.capacity.taken_mb <= pool.capacity.memory_mb
        pool.release(held[1])
        pool.release(lease)
        assert len(backend.links) == 3


async def test_idle_ones_make_room_for_a_row_by_as_much_as_it_may_take() -> None:
    async with opened(max_sandboxes=100, memory_mb=2 * LIMIT_MB) as (pool, backend):
        backend.used_mb = 32
        for digest in map(str, range(8)):
            await use(pool, digest)
        held = [await leased(pool, request(digest)) for digest in ("new", "newer")]
        assert pool.capacity.taken_mb == 2 * LIMIT_MB
        for lease in held:
            pool.release(lease)


async def test_no_more_sandboxes_run_at_once_than_may() -> None:
    async with opened(max_sandboxes=100, max_running=2, memory_mb=100 * LIMIT_MB) as (pool, backend):
        backend.used_mb = 4
        for digest in "abcd":
            await use(pool, digest)
        held = [await leased(pool, request(digest)) for digest in "ab"]
        waiting = [asyncio.create_task(leased(pool, request(digest))) for digest in "cd"]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)
        for lease in held:
            pool.release(lease)
        for task in waiting:
            lease = await asyncio.wait_for(task, 5)
            assert lease.warm
            pool.release(lease)
        assert len(backend.links) == 4


async def test_a_flood_of_warm_evaluators_leaves_something_to_run_for_others() -> None:
    async with opened(max_sandboxes=100, max_running=8, memory_mb=100 * LIMIT_MB) as (pool, backend):
        backend.used_mb = 4
        await use(pool, "theirs", workspace="quiet")
        for digest in map(str, range(20)):
            await use(pool, digest, workspace="loud")
        held: list[Lease] = []
        flood = [asyncio.create_task(leased(pool, request(str(at), workspace="loud"))) for at in range(20)]
        await asyncio.sleep(0.01)
        assert sum(task.done() for task in flood) == 6, (
            "a workspace must get at most three slots for each slot that stays free"
        )
        lease = await asyncio.wait_for(leased(pool, request("theirs", workspace="quiet")), 5)
        pool.release(lease)
        while len(held) < 20:
            for task in flood:
                if task.done() and task.result() not in held:
                    held.append(task.result())
                    pool.release(task.result())
            await asyncio.sleep(0)
        assert all(lease.warm for lease in held)


async def test_a_sandbox_that_grows_while_nobody_calls_it_is_ended() -> None:
    async with opened(max_sandboxes=100) as (pool, backend):
        backend.used_mb = 4
        await use(pool, "quiet")
        await use(pool, "grows")
        backend.links[0].used_mb, backend.links[1].used_mb = 20, 200
        pool.reap()
        await until(lambda: backend.links[1].destroyed)
        assert await use(pool, "quiet")
        assert pool.capacity.taken_mb == 20


async def hits(uses: list[str], places: int) -> int:
    async with opened(max_sandboxes=places, memory_mb=1 << 30) as (pool, _):
        found = 0
        for digest in uses:
            found += await use(pool, digest)
            await asyncio.sleep(0)
        return found


def lru_hits(uses: list[str], places: int) -> int:
    kept: OrderedDict[str, None] = OrderedDict()
    found = 0
    for digest in uses:
        found += digest in kept
        kept[digest] = None
        kept.move_to_end(digest)
        if len(kept) > places:
            kept.popitem(last=False)
    return found


@pytest.mark.long
async def test_under_a_zipf_load_the_often_used_stay_warm_better_than_by_lru() -> None:
    draw = random.Random(5)
    weights = [1 / rank**1.1 for rank in range(1, 301)]
    uses = list(map(str, draw.choices(range(300), weights, k=3000)))
    assert await hits(uses, 30) >= 1.08 * lru_hits(uses, 30)


async def test_round_robin_over_more_than_fit_keeps_those_that_do() -> None:
    uses = [str(number % 40) for number in range(400)]
    assert lru_hits(uses, 30) == 0
    assert await hits(uses, 30) >= 200


async def test_evaluators_that_are_no_longer_used_give_way() -> None:
    uses = [str(number % 10) for number in range(200)] + [str(10 + number % 10) for number in range(400)]
    assert await hits(uses, 12) >= 180 + 300


async def test_a_second_sandbox_takes_no_place_from_evaluators_that_are_used_more() -> None:
    async with opened(max_sandboxes=3, max_per_evaluator=2) as (pool, backend):
        for digest in ("a", "b", "a", "b", "a", "b", "c"):
            await use(pool, digest)
        held = await leased(pool, request("c"))
        second = asyncio.create_task(leased(pool, request("c")))
        await asyncio.sleep(0.1)
        assert not second.done(), "the caller must wait for the sandbox of its own evaluator"
        pool.release(held)
        pool.release(await second)
        assert len(backend.links) == 3
        assert await use(pool, "a")
        assert await use(pool, "b")


async def test_memory_that_nobody_can_measure_counts_by_the_limit() -> None:
    async with opened(max_sandboxes=100, memory_mb=3 * LIMIT_MB) as (pool, backend):
        for digest in "abcd":
            await use(pool, digest)
        await until(lambda: backend.alive == 3)
        small = replace(request("small"), spec=replace(SPEC, memory_mb=LIMIT_MB // 2))
        pool.release(await leased(pool, small))
        assert pool.capacity.taken_mb <= 3 * LIMIT_MB
