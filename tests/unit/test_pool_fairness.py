"""The sandbox pool is fair: no workspace can take every sandbox or every place in the queue, and workspaces take
turns."""

import asyncio
from dataclasses import replace

import pytest

from evaluator_host.engine.pool import Lease, LeaseRequest, Pool
from evaluator_host.engine.pool import fair_share as shares_module
from evaluator_host.engine.pool.fair_share import Capacity, Share
from evaluator_host.types.errors import Busy
from tests.unit.pools import SPEC, leased, opened, request, row, until


async def called(pool: Pool, *workspaces: str) -> None:
    """Make one call from each of these workspaces, so that the pool knows the workspaces."""
    for workspace in workspaces:
        pool.release(await leased(pool, request("known", workspace=workspace)))


class Flood:
    """A workspace that takes `count` sandboxes, one for each evaluator, and keeps each until the test gives it back."""

    def __init__(self, pool: Pool, workspace: str, count: int, *, memory_mb: int = SPEC.memory_mb) -> None:
        spec = replace(SPEC, memory_mb=memory_mb)
        requests = [
            replace(request(f"{workspace}-{number}", workspace=workspace), spec=spec) for number in range(count)
        ]
        self._pool = pool
        self._tasks = [asyncio.create_task(leased(pool, one)) for one in requests]
        self._given_back: set[Lease] = set()

    @property
    def held(self) -> list[Lease]:
        leases = [task.result() for task in self._tasks if task.done()]
        return [lease for lease in leases if lease not in self._given_back]

    @property
    def waiting(self) -> int:
        return sum(not task.done() for task in self._tasks)

    def give_one_back(self) -> None:
        lease = self.held[0]
        self._given_back.add(lease)
        self._pool.release(lease)


async def finish(*floods: Flood) -> None:
    """Give sandboxes back until every caller of these floods has had one."""
    while any(flood.held or flood.waiting for flood in floods):
        for flood in floods:
            if flood.held:
                flood.give_one_back()
        await asyncio.sleep(0)


async def test_a_flood_of_slow_evaluators_leaves_sandboxes_for_others() -> None:
    async with opened(max_sandboxes=8) as (pool, _):
        await called(pool, "quiet", "loud")
        loud = Flood(pool, "loud", 20)
        await until(lambda: len(loud.held) == 6)
        pool.release(await leased(pool, request("new", workspace="quiet")))  # this workspace need not wait
        assert len(loud.held) == 6, "a workspace must get at most three sandboxes for each one that stays free"
        await finish(loud)


async def test_while_a_workspace_is_alone_it_may_have_everything() -> None:
    async with opened(max_sandboxes=8) as (pool, _):
        only = Flood(pool, "only", 10)
        await until(lambda: len(only.held) == 8)
        newcomer = Flood(pool, "newcomer", 1)
        await until(lambda: pool.waiting == 3)
        only.give_one_back()
        await until(lambda: not newcomer.waiting)
        assert only.waiting == 2, (
            "two callers must still wait, because their workspace has more sandboxes than the other"
        )
        await finish(only, newcomer)


async def test_two_floods_leave_something_for_a_third_workspace() -> None:
    async with opened(max_sandboxes=8) as (pool, _):
        await called(pool, "a", "b", "c")
        a, b = Flood(pool, "a", 20), Flood(pool, "b", 20)
        await until(lambda: len(a.held) + len(b.held) == 7)
        pool.release(await leased(pool, request("new", workspace="c")))
        await finish(a, b)


async def test_large_sandboxes_count_by_their_memory() -> None:
    async with opened(max_sandboxes=100, memory_mb=4000) as (pool, _):
        await called(pool, "quiet", "loud")
        loud = Flood(pool, "loud", 5, memory_mb=1000)
        await until(lambda: len(loud.held) == 3)
        pool.release(await leased(pool, request("new", workspace="quiet")))
        assert len(loud.held) == 3
        await finish(loud)


async def test_small_sandboxes_do_not_keep_a_large_one_of_another_workspace_waiting_for_ever() -> None:
    async with opened(max_sandboxes=100, memory_mb=2000) as (pool, _):
        await called(pool, "quiet", "loud")
        small = Flood(pool, "loud", 40, memory_mb=100)
        await until(lambda: len(small.held) == 15)
        large = Flood(pool, "quiet", 1, memory_mb=900)
        await until(lambda: pool.waiting == 26)
        while large.waiting:  # for each sandbox that it gives back, the loud workspace asks for a new one
            small.give_one_back()
            await asyncio.sleep(0.001)
        assert small.waiting, "the small callers must still wait, because the large one needs their memory"
        await finish(small, large)


async def test_turns_go_round_the_workspaces() -> None:
    async with opened(max_sandboxes=1) as (pool, _):
        holder = await leased(pool, request("first", workspace="holder"))
        served: list[str] = []

        async def call(which: LeaseRequest) -> None:
            lease = await leased(pool, which)
            served.append(which.workspace)
            pool.release(lease)

        names = ["a"] * 6 + ["b"] * 2 + ["c"]
        calls = [asyncio.create_task(call(request(str(at), workspace=name))) for at, name in enumerate(names)]
        await until(lambda: pool.waiting == len(calls))
        pool.release(holder)
        await asyncio.gather(*calls)
        assert served == ["a", "b", "c", "a", "b", "a", "a", "a", "a"]


async def test_a_flood_leaves_places_in_the_queue_and_says_when_to_come_back() -> None:
    async with opened(max_sandboxes=1, queue_limit=100) as (pool, _):
        await called(pool, "quiet")
        held, loud = Flood(pool, "held", 1), Flood(pool, "loud", 90)
        await until(lambda: pool.waiting == 90)
        with pytest.raises(Busy) as raised:
            await pool.lease_sandbox(request("late", workspace="loud"))
        assert raised.value.retry_after_s == 1.0
        others = Flood(pool, "quiet", 5), Flood(pool, "new", 1)
        await until(lambda: pool.waiting == 96)
        await finish(held, loud, *others)


async def test_a_workspace_with_nobody_waiting_may_wait_though_the_queue_is_full() -> None:
    async with opened(max_sandboxes=1, queue_limit=10) as (pool, _):
        loud = Flood(pool, "loud", 1)
        await until(lambda: bool(loud.held))
        more = Flood(pool, "loud", 10)
        await until(lambda: pool.waiting == 10)
        first = Flood(pool, "newcomer", 1)
        await until(lambda: pool.waiting == 11)
        with pytest.raises(Busy):
            await pool.lease_sandbox(request("second", workspace="newcomer"))
        await finish(loud, more, first)


async def test_a_flood_gives_up_its_own_idle_sandboxes_before_anothers() -> None:
    async with opened(max_sandboxes=4) as (pool, backend):
        pool.release(await leased(pool, request("warm", workspace="quiet")))
        for digest in "ab":
            pool.release(await leased(pool, request(digest, workspace="loud")))
        held = [await leased(pool, request(digest, workspace="loud")) for digest in "cd"]
        again = await leased(pool, request("warm", workspace="quiet"))
        assert again.warm, "this sandbox was idle longest, but the other workspace must lose its own first"
        for lease in (*held, again):
            pool.release(lease)
        assert len(backend.links) == 5


async def test_a_warm_sandbox_is_kept_from_a_flood_that_has_its_share() -> None:
    async with opened(max_sandboxes=4) as (pool, _):
        await called(pool, "quiet")
        loud = Flood(pool, "loud", 10)
        await until(lambda: len(loud.held) == 3)
        for _ in range(3):
            lease = await leased(pool, request("known", workspace="quiet"))
            assert lease.warm
            await lease.sandbox.call(row("ok"), timeout_s=1)
            pool.release(lease)
        await finish(loud)


def test_the_retry_time_depends_on_how_fast_the_queue_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(shares_module.time, "monotonic", lambda: now)
    share = Share(moved_at=now)
    assert share.retry_after_s == 1.0
    share.waited_s, now = 4.0, 1001.0
    assert share.retry_after_s == 4.0
    now = 1007.0  # since then, no call has got a sandbox
    assert share.retry_after_s == 7.0
    now = 9999.0
    assert share.retry_after_s == 30.0


async def test_a_sandbox_that_took_long_to_start_serves_before_it_is_given_up() -> None:
    async with opened(max_sandboxes=1) as (pool, backend):
        backend.start_s = 0.4  # seconds; longer than the shortest turn
        served = []

        async def call(which: LeaseRequest) -> None:
            lease = await leased(pool, which)
            served.append(which.digest)
            pool.release(lease)

        await asyncio.gather(*(call(request(digest)) for digest in "ababab"))
        assert sorted(served) == ["a"] * 3 + ["b"] * 3
        assert len(backend.links) == 2, "each sandbox must be started only once"


def test_processes_of_a_host_divide_its_limits_and_each_may_have_one_sandbox() -> None:
    capacity = Capacity(max_sandboxes=7, memory_mb=1000, max_running=1)
    capacity.divide(2)
    assert (capacity.max_sandboxes, capacity.max_running, capacity.memory_mb) == (3, 1, 500)
    capacity.divide(1)
    assert (capacity.max_sandboxes, capacity.max_running, capacity.memory_mb) == (7, 1, 1000)
