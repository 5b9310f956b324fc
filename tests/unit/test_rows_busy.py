"""If the queue becomes full while rows are evaluated, rows that have a place are finished, and the others are refused
at once.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.pool import Pool
from evaluator_host.engine.pool import fair_share as shares
from evaluator_host.engine.service import calls as row_calls
from evaluator_host.engine.service import calls_first
from evaluator_host.engine.service import rows as row_streams
from evaluator_host.engine.service.calls import Callee, row_binder
from evaluator_host.engine.service.calls_first import CallsFirst
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.engine.service.prepared import prepare
from evaluator_host.engine.service.rows import RowStream
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.types.errors import Busy
from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Limits, Row
from evaluator_host.types.outcome import ErrorCode
from tests.unit.pools import leased, opened, request, until


async def no_pins(modules: Sequence[str], _language: Language, *, workspace: str) -> list[str | None]:
    return [None for _ in modules]


def stream(pool: Pool, *words: str, folder: Path, parallelism: int = 1, calls: CallsFirst | None = None) -> RowStream:
    evaluator = Evaluator("ok", limits=Limits(timeout_s=0.3))
    prepared = prepare(evaluator, settings=Settings(data_dir=folder), pins=PinLookup(no_pins), workspace="w")
    rows = [Row(outputs=word) for word in words]
    isolation = Isolation.ROW if calls is None else Isolation.BATCH
    callee = Callee(pool, prepared, row_binder(LimitedProcesses(), prepared))
    return RowStream(callee, rows, isolation=isolation, parallelism=parallelism, calls=calls)


@pytest.mark.parametrize("word", ["garbage", "misnamed", "malformed"])
async def test_an_invalid_answer_costs_a_batch_only_its_row(tmp_path: Path, word: str) -> None:
    words = ["ok"] * 5 + [word] + ["ok"] * 30
    async with opened(max_sandboxes=2) as (pool, backend):
        results = await _all(aiter(stream(pool, *words, folder=tmp_path, calls=CallsFirst())))
        assert {index: result.error.code for index, result, _ in results if result.error} == {5: ErrorCode.CRASHED}
        assert sorted(index for index, _, _ in results) == list(range(len(words)))
        assert [link.destroyed for link in backend.links] == [True, False]


async def test_a_row_that_breaks_its_sandbox_does_not_cost_the_rows_after_it_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "_SOONEST_S", 0.01)
    async with opened(max_sandboxes=1, queue_limit=1) as (pool, _):
        results = aiter(stream(pool, "ok", "hang", "ok", folder=tmp_path))
        first = await anext(results)
        other = asyncio.create_task(leased(pool, request("another")))
        await until(lambda: pool.waiting == 1)
        rest = asyncio.create_task(_all(results))
        pool.release(await other)
        assert [result.status for _, result, _ in [first, *await rest]] == ["scored", "failed", "scored"]


async def test_a_second_sandbox_that_is_not_to_be_had_does_not_fail_the_rows(tmp_path: Path) -> None:
    async with opened(max_sandboxes=2, max_per_evaluator=2, queue_limit=1) as (pool, _):
        found = await _all(aiter(stream(pool, "ok", "ok", folder=tmp_path, parallelism=2)))
        assert [result.status for _, result, _ in found] == ["scored", "scored"]


async def test_other_tasks_run_while_as_many_rows_as_permitted_wait_for_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = iter([("ask",), ("ask",)])

    async def answered(_models: object, row: Row, _asks: object, **_: object) -> Row:
        await asyncio.sleep(0.05)
        return row

    monkeypatch.setattr(row_calls, "_AT_MODELS", 2)
    monkeypatch.setattr(row_calls, "asked_for", lambda *_: next(asks, ()))
    monkeypatch.setattr(row_calls, "answered", answered)
    async with opened(max_sandboxes=1) as (pool, _):
        leases = []
        lease = pool.lease_sandbox
        monkeypatch.setattr(pool, "lease_sandbox", lambda wanted: leases.append(wanted) or lease(wanted))
        found = await _all(aiter(stream(pool, *["ok"] * 5, folder=tmp_path)))
        assert sorted((index, result.status) for index, result, _ in found) == [(row, "scored") for row in range(5)]
        assert len(leases) < 5


async def test_rows_for_which_there_is_no_place_are_refused(tmp_path: Path) -> None:
    async with opened(max_sandboxes=1, queue_limit=1) as (pool, _):
        held = await leased(pool, request())
        waiting = asyncio.create_task(leased(pool, request("another")))
        await until(lambda: pool.waiting == 1)
        with pytest.raises(Busy):
            await _all(aiter(stream(pool, "ok", folder=tmp_path, parallelism=2)))
        pool.release(held)
        pool.release(await waiting)


async def test_results_wait_for_a_slow_consumer_up_to_a_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_streams, "BUFFERED_BYTES", 1)
    async with opened(max_sandboxes=2, max_per_evaluator=2) as (pool, _):
        rows = stream(pool, *["ok"] * 20, folder=tmp_path, parallelism=2)
        results = aiter(rows)
        found = [await anext(results)]
        await asyncio.sleep(0.3)
        assert rows._results.qsize() <= 1
        found += await _all(results)
        assert sorted(index for index, _, _ in found) == list(range(20))
        assert all(size > 0 for _, _, size in found)
        assert rows._waiting_bytes == 0


async def test_rows_of_a_batch_give_way_to_a_call_and_go_on_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls_first, "SLICE_S", 0.0)
    monkeypatch.setattr(calls_first, "LONGEST_PAUSE_S", 60.0)
    calls, found = CallsFirst(), []
    async with opened() as (pool, _):

        async def read() -> None:
            async for item in stream(pool, *["ok"] * 50, folder=tmp_path, calls=calls):
                found.append(item)  # noqa: PERF401 - the list is watched while it grows

        reading = asyncio.create_task(read())
        await until(lambda: len(found) > 5)
        with calls.call(), calls.call():
            await asyncio.sleep(0.02)
            before = len(found)
            await asyncio.sleep(0.05)
            assert len(found) == before < 50
        await asyncio.wait_for(reading, 10)
        assert len(found) == 50


async def test_rows_of_a_batch_go_on_slowly_while_calls_never_cease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls_first, "LONGEST_PAUSE_S", 0.001)
    calls = CallsFirst()
    async with opened() as (pool, _):
        with calls.call():
            assert len(await _all(aiter(stream(pool, *["ok"] * 50, folder=tmp_path, calls=calls)))) == 50


async def _all(results):
    return [item async for item in results]
