"""The sandbox pool gives each caller the right sandbox, lets the right callers wait, and ends the right sandboxes."""

import asyncio

import pytest

from evaluator_host.engine.pool import LeaseRequest
from evaluator_host.engine.sandbox.base import Weight
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.types.errors import Busy, HostError, SandboxLost, SandboxUnavailable
from evaluator_host.types.outcome import Failed, Returned
from tests.unit.pools import SPEC, leased, opened, request, row, until


async def test_the_second_call_of_an_evaluator_is_warm_and_on_the_same_sandbox() -> None:
    async with opened() as (pool, backend):
        first = await leased(pool, request())
        assert not first.warm
        pool.release(first)
        second = await leased(pool, request())
        assert second.warm
        assert second.sandbox is first.sandbox
        pool.release(second)
        assert len(backend.links) == 1


async def test_a_sandbox_never_serves_two_evaluators_nor_two_workspaces() -> None:
    async with opened() as (pool, backend):
        for which in (request("a"), request("b"), request("a", workspace="other")):
            pool.release(await leased(pool, which))
        assert len(backend.links) == 3


async def test_compiled_code_is_kept_for_the_next_sandbox_but_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator_host.engine.pool.evaluator_pools.BUNDLE_BYTES", 4 << 20)
    async with opened() as (pool, backend):

        async def bundle_of(name: str, workspace: str) -> object:
            """Load an evaluator in a new sandbox, and return the bundle that the sandbox got."""
            lease = await leased(pool, request(name, workspace=workspace, code=f"bundle {name}"))
            assert lease.loaded.bundle is None, "only the pool may keep the bundle: caches keep facts"
            lease.sandbox.broken = True
            pool.release(lease)
            return backend.links[-1].bundle

        assert await bundle_of("a", "modest") is None
        for number in range(8):
            assert await bundle_of(str(number), "greedy") is None
        assert str(await bundle_of("a", "modest")).strip() == "bundle a"
        assert str(await bundle_of("7", "greedy")).strip() == "bundle 7"
        assert await bundle_of("0", "greedy") is None


async def test_calls_that_arrive_while_the_sandbox_starts_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # seconds; rows get another sandbox only if they wait for longer
    monkeypatch.setattr("evaluator_host.engine.pool.pool.GROW_AFTER_S", 60.0)
    async with opened() as (pool, backend):
        backend.gate = asyncio.Event()

        async def call() -> None:
            lease = await leased(pool, request())
            outcome = await lease.sandbox.call(row("ok"), timeout_s=1)
            assert isinstance(outcome, Returned)
            pool.release(lease)

        calls = [asyncio.create_task(call()) for _ in range(20)]
        await until(lambda: pool.waiting == 20)
        backend.gate.set()
        await asyncio.gather(*calls)
        assert len(backend.links) == 1
        assert len(backend.links[0].calls) == 20


async def test_sandboxes_start_a_few_at_a_time_and_workspaces_take_turns() -> None:
    async with opened(max_starting=2) as (pool, backend):
        backend.gate = asyncio.Event()
        served: list[str] = []

        async def call(name: str, workspace: str) -> None:
            lease = await leased(pool, request(name, workspace=workspace))
            served.append(workspace)
            pool.release(lease)

        calls = [asyncio.create_task(call(str(number), "loud")) for number in range(6)]
        await until(lambda: backend.starting == 2)
        calls.append(asyncio.create_task(call("x", "quiet")))
        await until(lambda: pool.waiting == 7)
        backend.gate.set()
        await asyncio.gather(*calls)
        assert backend.most_starting == 2
        assert served == ["loud", "loud", "quiet", "loud", "loud", "loud", "loud"]


async def test_a_caller_that_waits_longer_than_a_start_gets_a_second_sandbox() -> None:
    async with opened(max_per_evaluator=2) as (pool, _):
        held = await leased(pool, request())
        second = await leased(pool, request())
        assert second.sandbox is not held.sandbox
        third = asyncio.create_task(leased(pool, request()))
        await asyncio.sleep(0.1)
        assert not third.done(), "an evaluator must get at most two sandboxes"
        pool.release(held)
        pool.release(await third)
        pool.release(second)


async def test_a_load_that_fails_answers_everybody_who_waits_and_leaves_no_sandbox() -> None:
    async with opened() as (pool, backend):
        answers = await asyncio.gather(*(pool.lease_sandbox(request(code="bad")) for _ in range(5)))
        assert all(isinstance(answer, Failed) for answer in answers)
        await until(lambda: backend.alive == 0)
        assert len(backend.links) == 1


async def test_a_fault_of_the_host_is_everybodys_error_and_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    async def faulty(*_: object, **__: object) -> None:
        raise TypeError("a fault")

    async with opened() as (pool, backend):
        with monkeypatch.context() as patched:
            patched.setattr(Sandbox, "load", faulty)
            answers = await asyncio.gather(*(pool.lease_sandbox(request()) for _ in range(3)), return_exceptions=True)
            assert [type(answer) for answer in answers] == [HostError] * 3
            await until(lambda: backend.alive == 0)
        pool.release(await leased(pool, request()))


async def test_a_backend_that_cannot_start_is_everybodys_error_and_not_a_hang() -> None:
    async with opened() as (pool, backend):
        backend.broken = True
        answers = await asyncio.gather(*(pool.lease_sandbox(request()) for _ in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [SandboxUnavailable] * 3
        backend.broken = False
        pool.release(await leased(pool, request()))


async def test_a_full_queue_answers_busy_and_takes_calls_again_later() -> None:
    async with opened(max_per_evaluator=1, queue_limit=2) as (pool, _):
        held = await leased(pool, request())
        waiting = [asyncio.create_task(leased(pool, request())) for _ in range(2)]
        await until(lambda: pool.waiting == 2)
        with pytest.raises(Busy) as raised:
            await pool.lease_sandbox(request())
        assert raised.value.retry_after_s > 0
        pool.release(held)
        for task in waiting:
            pool.release(await task)
        pool.release(await leased(pool, request()))


async def test_one_workspaces_flood_does_not_fill_anothers_queue_nor_keep_its_sandbox() -> None:
    async with opened(max_sandboxes=1, queue_limit=50) as (pool, _):
        served: list[str] = []

        async def call(which: LeaseRequest) -> None:
            lease = await leased(pool, which)
            await asyncio.sleep(0.02)
            served.append(which.workspace)
            pool.release(lease)

        flood = [asyncio.create_task(call(request("a", workspace="loud"))) for _ in range(50)]
        await until(lambda: pool.waiting >= 49)
        await call(request("b", workspace="quiet"))
        assert served.index("quiet") < 30, "the quiet workspace must not wait for the whole flood"
        await asyncio.gather(*flood)
        assert served.count("loud") == 50


async def test_an_idle_sandbox_makes_room_for_an_evaluator_that_has_none() -> None:
    async with opened(max_sandboxes=2) as (pool, backend):
        for digest in ("a", "b", "c", "a"):
            pool.release(await leased(pool, request(digest)))
        await until(lambda: backend.alive == 2)
        assert len(backend.links) == 4, "the least recently used sandboxes must end first: a for c, then b for a"


async def test_a_caller_that_hangs_up_while_waiting_takes_no_sandbox_with_it() -> None:
    async with opened(max_per_evaluator=1) as (pool, backend):
        held = await leased(pool, request())
        waiting = asyncio.create_task(leased(pool, request()))
        await until(lambda: pool.waiting == 1)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert pool.waiting == 0
        pool.release(held)
        again = await leased(pool, request())
        assert again.warm
        pool.release(again)
        assert len(backend.links) == 1


@pytest.mark.parametrize("timeout_s", [60, 0.01], ids=["during the row", "during a late answer"])
async def test_a_caller_that_hangs_up_in_the_middle_of_a_row_has_it_cancelled(
    timeout_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsing: list[object] = []

    async def parse(frame: object, _: object) -> None:
        parsing.append(frame)
        await asyncio.sleep(60)

    async with opened() as (pool, backend):
        lease = await leased(pool, request())
        monkeypatch.setattr("evaluator_host.engine.sandbox.session._aside", parse)
        call = asyncio.create_task(lease.sandbox.call(row("hang"), timeout_s=timeout_s))
        await until(lambda: bool(backend.links[0].calls if timeout_s == 60 else parsing))
        call.cancel()
        await asyncio.wait([call])
        pool.release(lease)
        again = await leased(pool, request())
        assert len(backend.links[0].cancelled) == 1
        assert again.warm, "the same sandbox must continue"
        pool.release(again)


@pytest.mark.parametrize(
    ("word", "code"), [("die", "crashed"), ("garbage", "crashed"), ("hang", "timeout")], ids=["die", "garbage", "hang"]
)
async def test_a_sandbox_that_breaks_fails_its_row_and_is_replaced(word: str, code: str) -> None:
    async with opened() as (pool, backend):
        lease = await leased(pool, request())
        outcome = await lease.sandbox.call(row(word), timeout_s=0.05)
        assert isinstance(outcome, Failed)
        assert outcome.error.code == code
        pool.release(lease)
        again = await leased(pool, request())
        assert isinstance(await again.sandbox.call(row("ok"), timeout_s=1), Returned)
        pool.release(again)
        assert backend.alive == 1


async def test_a_sandbox_lost_by_its_backend_is_an_exception_and_not_the_guests_crash() -> None:
    async with opened() as (pool, _):
        lease = await leased(pool, request())
        with pytest.raises(SandboxLost):
            await lease.sandbox.call(row("lost"), timeout_s=1)
        pool.release(lease)


async def test_a_sandbox_that_died_while_idle_is_not_handed_out() -> None:
    async with opened() as (pool, backend):
        pool.release(await leased(pool, request()))
        backend.links[0].die()
        lease = await leased(pool, request())
        assert not lease.warm
        assert isinstance(await lease.sandbox.call(row("ok"), timeout_s=1), Returned)
        pool.release(lease)


async def test_idle_and_worn_sandboxes_are_reaped() -> None:
    async with opened(idle_ttl_s=0.01) as (pool, backend):
        pool.release(await leased(pool, request()))
        await asyncio.sleep(0.02)
        pool.reap()
        await until(lambda: backend.alive == 0)
    async with opened(max_rows=2) as (pool, backend):
        for _ in range(4):
            lease = await leased(pool, request())
            await lease.sandbox.call(row("ok"), timeout_s=1)
            pool.release(lease)
        assert len(backend.links) == 2


async def test_a_blank_sandbox_waits_and_is_replaced_when_taken() -> None:
    async with opened(idle_sandboxes=1) as (pool, backend):
        await pool.prewarm(SPEC)
        assert backend.alive == 1
        lease = await leased(pool, request())
        assert lease.sandbox.link is backend.links[0]
        await until(lambda: len(backend.links) == 2)
        pool.release(lease)


async def test_at_the_ceiling_a_blank_takes_the_place_of_the_evaluator_that_idles_longest() -> None:
    async with opened(max_sandboxes=3, idle_sandboxes=1) as (pool, backend):
        await pool.prewarm(SPEC)
        for number in range(5):
            pool.release(await leased(pool, request(str(number))))
            await asyncio.sleep(0.01)  # give the pool time to replace the prewarmed sandbox
        assert backend.alive == 3
        assert len(backend.links) == 6, "every evaluator must find a prewarmed sandbox"


async def test_a_second_sandbox_of_a_busy_evaluator_is_worth_an_idle_one_of_another() -> None:
    async with opened(max_sandboxes=2, max_per_evaluator=2) as (pool, backend):
        pool.release(await leased(pool, request("idle")))
        first = await leased(pool, request("busy"))
        second = await leased(pool, request("busy"))
        assert second.sandbox is not first.sandbox
        assert backend.alive == 2
        pool.release(first)
        pool.release(second)


async def test_closing_fails_all_callers_that_wait() -> None:
    async with opened(max_per_evaluator=1) as (pool, _):
        held = await leased(pool, request())
        waiting = asyncio.create_task(leased(pool, request()))
        await until(lambda: pool.waiting == 1)
        closing = asyncio.create_task(pool.close())
        with pytest.raises(SandboxUnavailable):
            await waiting
        pool.release(held)
        await closing


async def test_closing_while_a_blank_is_starting_ends_and_leaves_nothing() -> None:
    async with opened(idle_sandboxes=1) as (pool, backend):
        pool.release(await leased(pool, request()))  # this makes the pool start a prewarmed sandbox
        backend.gate = asyncio.Event()
        await asyncio.sleep(0)
        closing = asyncio.create_task(pool.close())
        await asyncio.sleep(0.01)
        backend.gate.set()
        async with asyncio.timeout(5):
            await closing


async def test_a_row_that_waits_leaves_its_place_and_memory_to_others() -> None:
    async with opened(max_sandboxes=4, max_running=1, max_per_evaluator=1, memory_mb=SPEC.memory_mb + 20) as (
        pool,
        backend,
    ):
        backend.used_mb = 10
        first = await leased(pool, request())
        pool.pause(first, waits=True)
        assert (pool.capacity.running, pool.capacity.taken_mb) == (0, 10)
        second = await leased(pool, request())
        assert second.sandbox is not first.sandbox
        resumed = asyncio.create_task(pool.resume(first))
        await asyncio.sleep(0.01)
        assert not resumed.done(), "only one row may run at a time, so the first row must wait for the second"
        waiting = asyncio.create_task(leased(pool, request()))
        await asyncio.sleep(0.01)
        pool.release(second)
        await resumed
        assert not waiting.done(), "a row that has its answer must go before a new row"
        assert pool.capacity.running == 1
        pool.pause(first, waits=False)  # this changes nothing, because the row is already running
        pool.release(first)
        pool.release(await waiting)


async def test_a_row_that_computes_for_long_weighs_less_until_it_has_ended() -> None:
    async with opened() as (pool, backend):
        lease = await leased(pool, request())
        weights = backend.links[0].weights
        await lease.sandbox.call(row("ok"), timeout_s=60)
        assert weights == [], "a short row must not change the weight"
        call = asyncio.create_task(lease.sandbox.call(row("hang"), timeout_s=60))
        await until(lambda: weights == [Weight.LONG])
        pool.pause(lease, waits=True)
        pool.pause(lease, waits=False)
        assert weights == [Weight.LONG, Weight.WAITS, Weight.LONG]
        call.cancel()
        pool.release(lease)
        await until(lambda: weights[3:] == [Weight.USUAL])
        await until(lambda: lease.sandbox.quiet)


async def test_a_row_that_ended_while_it_waited_is_counted_once() -> None:
    async with opened(max_running=1) as (pool, _):
        first = await leased(pool, request())
        pool.pause(first, waits=True)
        other = await leased(pool, request("b"))
        resumed = asyncio.create_task(pool.resume(first))
        await asyncio.sleep(0.01)
        pool.pause(first, waits=False)
        resumed.cancel()
        pool.retire(first)
        pool.release(other)
        await until(lambda: pool.capacity.running == 0)


async def test_a_waiting_sandbox_that_grows_without_room_is_ended() -> None:
    async with opened(max_sandboxes=4, memory_mb=SPEC.memory_mb + 20) as (pool, backend):
        backend.used_mb = 10
        leases = [await leased(pool, request("a"))]
        pool.pause(leases[0], waits=True)
        leases.append(await leased(pool, request("b")))
        pool.pause(leases[1], waits=True)
        backend.links[0].used_mb = 200
        pool.reap()
        assert pool.capacity.taken_mb == 210
        backend.links[1].used_mb = 200
        pool.reap()
        await until(lambda: backend.links[1].destroyed)
        assert not backend.links[0].destroyed
        for lease in leases:
            pool.pause(lease, waits=False)
            pool.release(lease)


async def test_rows_with_answers_leave_other_workspaces_their_share() -> None:
    async with opened(max_sandboxes=16, max_running=4, max_per_evaluator=4) as (pool, _):
        pool.release(await leased(pool, request("b", workspace="other")))
        rows = []
        for _ in range(6):
            rows.append(await leased(pool, request("a")))
            pool.pause(rows[-1], waits=True)
        resumed = [asyncio.create_task(pool.resume(row)) for row in rows]
        await asyncio.sleep(0.01)
        assert [one.done() for one in resumed] == [True] * 3 + [False] * 3
        async with asyncio.timeout(5):
            other = await leased(pool, request("b", workspace="other"))
        pool.release(rows[0])
        await asyncio.sleep(0.01)
        assert not resumed[3].done(), (
            "the row must wait, because the other workspace uses one slot, and another is kept free for it"
        )
        pool.release(other)
        for row, one in zip(rows[1:], resumed[1:], strict=True):
            await one
            pool.release(row)
        assert pool.capacity.running == 0


async def test_rows_with_answers_take_turns_with_calls_of_others() -> None:
    async with opened(max_sandboxes=16, max_running=1, max_per_evaluator=4) as (pool, _):
        rows = []
        for _ in range(3):
            rows.append(await leased(pool, request("a")))
            pool.pause(rows[-1], waits=True)
        resumed = [asyncio.create_task(pool.resume(row)) for row in rows]
        await resumed[0]
        other = asyncio.create_task(leased(pool, request("b", workspace="other")))
        await asyncio.sleep(0.01)
        pool.release(rows[0])
        async with asyncio.timeout(5):
            lease = await other
        assert not resumed[1].done()
        pool.release(lease)
        for row, one in zip(rows[1:], resumed[1:], strict=True):
            await one
            pool.release(row)
        assert pool.capacity.running == 0
