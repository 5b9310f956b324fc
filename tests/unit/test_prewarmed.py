"""Sandboxes that wait for a first call import packages in advance; a package set that fails there costs only one
sandbox.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.engine.pool import LeaseRequest, Pool, prewarmed
from evaluator_host.types.errors import SandboxUnavailable
from evaluator_host.types.evaluator import Language, SandboxSpec
from evaluator_host.vendors.nemo.dialect import SDK as NEMO
from tests.fake_runner import FakeBackend
from tests.unit.pools import LOAD, SPEC, leased, opened, until


def spec(name: str = "set", *, language: Language = Language.PYTHON, **import_ms: float) -> SandboxSpec:
    environment = replace(SPEC.environment, digest=name, language=language, path=Path("/set"))
    return replace(SPEC, language=language, environment=replace(environment, import_ms=tuple(import_ms.items())))


def request(of: SandboxSpec, digest: str) -> LeaseRequest:
    return LeaseRequest("w", digest, of, LOAD)


@asynccontextmanager
async def waiting(of: SandboxSpec, **limits: object) -> AsyncIterator[tuple[Pool, FakeBackend]]:
    """Yield a pool and its backend. A sandbox with this package set waits in the pool for a second evaluator."""
    async with opened(idle_sandboxes=1, **limits) as (pool, backend):
        pool.release(await leased(pool, request(of, "first")))
        await until(lambda: len(backend.links) > 1)
        yield pool, backend


async def test_a_waiting_sandbox_imports_what_the_check_of_its_set_did() -> None:
    async with waiting(spec(numpy=300.0, pandas=600.0)) as (_, backend):
        await until(lambda: backend.links[1].prepared == ["numpy", "pandas"])
        assert backend.links[0].prepared is None, "the first sandbox gets its load at once, so it must not import first"


async def test_a_waiting_sandbox_imports_the_light_modules_of_an_sdk_after_its_set() -> None:
    for of, wanted in (
        (spec(pydantic=300.0), ["pydantic", "nemo_evaluator_sdk.exports"]),
        (spec(), ["nemo_evaluator_sdk.exports"]),
    ):
        async with waiting(replace(of, stand_in=NEMO.stand_in)) as (pool, backend):
            await until(lambda backend=backend, wanted=wanted: backend.links[1].prepared == wanted)
            lease = await leased(pool, request(of, "of no sdk"))
            assert lease.sandbox.link is not backend.links[1], "this evaluator must not find modules of the SDK"
            pool.release(lease)


async def test_imports_that_take_no_time_are_left_to_the_load() -> None:
    for quick in (spec(), spec(tiny=1.0)):
        async with waiting(quick) as (_, backend):
            await until(lambda backend=backend: backend.links[1].prepared == [])


async def test_only_python_is_prepared() -> None:
    async with waiting(spec(language=Language.JAVASCRIPT, lodash=300.0)) as (pool, backend):
        pool.release(await leased(pool, request(spec(language=Language.JAVASCRIPT), "second")))
        assert [link.prepared for link in backend.links[:2]] == [None, None]


async def test_a_set_that_goes_wrong_costs_a_sandbox_once_and_nothing_after_that() -> None:
    for wrong in ("refuses", "dies"):
        async with opened(idle_sandboxes=1) as (pool, backend):
            backend.preparing = wrong
            pool.release(await leased(pool, request(spec(odd=300.0), "first")))
            await until(lambda backend=backend: len(backend.links) == 3 and backend.links[1].destroyed)
            assert backend.links[1].prepared == ["odd"]
            for number, name in ((2, "second"), (3, "third")):
                lease = await leased(pool, request(spec(odd=300.0), name))
                assert lease.sandbox.link is backend.links[number]
                assert backend.links[number].prepared is None
                pool.release(lease)
                await until(lambda backend=backend, number=number: len(backend.links) == number + 2)


async def test_a_sandbox_that_still_imports_makes_way_for_a_call() -> None:
    async with opened(idle_sandboxes=1, max_sandboxes=2, max_per_evaluator=1) as (pool, backend):
        backend.preparing = "never answers"
        held = await leased(pool, request(spec(odd=5000.0), "first"))
        await until(lambda: len(backend.links) == 2 and backend.links[1].prepared == ["odd"])
        other = await asyncio.wait_for(leased(pool, request(SPEC, "other")), 5)
        assert backend.links[1].destroyed
        pool.release(other)
        pool.release(held)


async def test_a_call_waits_for_a_sandbox_that_is_about_to_wait() -> None:
    async with opened(idle_sandboxes=1, max_sandboxes=1) as (pool, backend):
        backend.gate = asyncio.Event()
        filling = asyncio.create_task(pool.prewarm(SPEC))
        await until(lambda: pool.capacity.sandboxes == 1)
        call = asyncio.create_task(leased(pool, request(SPEC, "a")))
        await until(lambda: pool.waiting == 1)
        backend.gate.set()
        lease = await asyncio.wait_for(call, 5)
        await filling
        pool.release(lease)


async def test_each_recently_used_set_has_a_sandbox_waiting_and_the_others_have_none() -> None:
    async with opened(idle_sandboxes=1, max_sandboxes=40, memory_mb=40 * SPEC.memory_mb) as (pool, backend):
        await asyncio.gather(*(pool.prewarm(spec(f"set-{number}")) for number in range(25)))
        await until(lambda: backend.alive == 20)
        links = len(backend.links)
        for number in (24, 10, 5):
            lease = await leased(pool, request(spec(f"set-{number}"), f"on {number}"))
            assert lease.sandbox.link in backend.links[:links], "the evaluator must get a sandbox that was waiting"
            pool.release(lease)
        lease = await leased(pool, request(spec("set-4"), "a"))
        assert lease.sandbox.link not in backend.links[:links]
        pool.release(lease)
        await until(lambda: not pool._prewarmed._starting)  # the pool forgets sets that nobody uses


async def test_a_set_whose_files_changed_leaves_no_sandbox_waiting() -> None:
    for preparing in ("answers", "never answers"):
        async with opened(idle_sandboxes=1) as (pool, backend):
            backend.preparing = preparing
            filling = asyncio.create_task(pool.prewarm(spec(numpy=300.0)))
            await until(lambda backend=backend: bool(backend.links) and backend.links[0].prepared is not None)
            await asyncio.sleep(0.01)
            pool.forget("set")
            await filling
            await until(lambda backend=backend: backend.alive == 0)
            assert len(backend.links) == 1


async def test_a_set_that_nobody_uses_is_not_kept_waiting_for_ever() -> None:
    async with opened(idle_sandboxes=1, max_age_s=0.05) as (pool, backend):
        await pool.prewarm(spec())
        await pool.prewarm(SPEC)
        await asyncio.sleep(0.1)
        pool.reap()
        await until(lambda: backend.alive == 1 and len(backend.links) == 3)
        assert not backend.links[2].destroyed


async def test_javascript_waits_from_the_start_and_stays_where_somebody_uses_it() -> None:
    script = replace(
        SPEC, language=Language.JAVASCRIPT, environment=replace(SPEC.environment, language=Language.JAVASCRIPT)
    )
    async with opened(idle_sandboxes=1, idle_ttl_s=0.05) as (pool, backend):
        await pool.prewarm(script)
        await pool.prewarm(SPEC)
        await asyncio.sleep(0.1)
        pool.reap()
        await until(lambda: [link.destroyed for link in backend.links] == [True, False])
        pool.release(await leased(pool, request(script, "first")))
        await until(lambda: len(backend.links) == 4)
        await asyncio.sleep(0.1)
        pool.reap()
        await asyncio.sleep(0.1)
        assert not backend.links[3].destroyed


async def test_where_none_is_to_wait_readiness_is_proven_by_one_that_is_thrown_away_and_holds_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(idle_sandboxes=0) as (pool, backend):
        await asyncio.gather(*(pool.probe(SPEC) for _ in range(5)))
        await until(lambda: backend.alive == 0)
        assert len(backend.links) == 1
        backend.broken = True
        await pool.probe(SPEC)
        monkeypatch.setattr(prewarmed, "PROBE_HOLDS_S", 0.0)
        with pytest.raises(SandboxUnavailable):
            await pool.probe(SPEC)
        assert pool.capacity.sandboxes == 0


async def test_a_sandbox_that_started_elsewhere_proves_readiness_too() -> None:
    async with opened(idle_sandboxes=0) as (pool, backend):
        pool.note_start(SPEC)
        await pool.probe(SPEC)
        assert len(backend.links) == 0


async def test_a_host_that_is_full_is_ready() -> None:
    async with opened(idle_sandboxes=0, max_sandboxes=1) as (pool, backend):
        lease = await leased(pool, request(SPEC, "busy"))
        await pool.probe(SPEC)
        assert len(backend.links) == 1
        pool.release(lease)
