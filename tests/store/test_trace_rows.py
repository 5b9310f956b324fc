"""Traces that become rows of a data set are bounded in size and memory, and do not block the event loop."""

import gc
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy import event

from evaluator_host.engine.system.memory import MemoryBudget
from evaluator_host.platform.traces.live_traffic import Traffic
from evaluator_host.platform.traces.table import Traces
from evaluator_host.types.errors import Busy, NotFound, TooLarge
from tests.databases import opened_store
from tests.loop_watch import held_s, watching
from tests.store.records import WORKSPACE
from tests.store.test_usage import CONTENT, TRACE
from tests.tables import tables

MB = 1 << 20


@pytest.mark.sampled(2)
async def test_traces_as_rows_take_bounded_memory_and_do_not_hold_the_event_loop(
    database_url: str, tmp_path: Path
) -> None:
    async with opened_store(database_url, tmp_path) as store:
        made = await tables(store).evaluators.create_evaluator(WORKSPACE, "exact", CONTENT)
        known, budget = Traces(store.database), MemoryBudget(1 << 30)
        traffic = Traffic(Mock(), Mock(), known, Mock())
        large, full = f'["{"x" * (5 * MB)}"]', f"[{'[],' * (MB // 2)}0]"
        texts = [large] * 4 + [full] * 3
        await known.add_traces([replace(TRACE, evaluator_id=made.evaluator_id, trace=one) for one in texts])
        numbers = sorted(one for one, _ in await known.list_traces(WORKSPACE, "exact", limit=4))
        numbers = list(range(numbers[-1] - 6, numbers[-1] + 1))
        held = held_s()
        gc.collect()
        # a server also freezes its objects when it starts
        gc.freeze()
        with budget.hold(WORKSPACE) as memory, watching() as watch:
            with pytest.raises(TooLarge, match="have over 16 MB in total"):
                await traffic.rows_of_traces(WORKSPACE, "exact", numbers[:4], memory=memory)
            with pytest.raises(TooLarge, match=r"about 1\d\d MB of memory as rows"):
                await traffic.rows_of_traces(WORKSPACE, "exact", numbers[4:], memory=memory)
            found = await traffic.rows_of_traces(WORKSPACE, "exact", [numbers[6], numbers[0]], memory=memory)
        gc.unfreeze()
        assert [len(one["trace"]) for one in found] == [MB // 2 + 1, 1]
        assert watch.longest_s < held, watch.longest
        small = MemoryBudget(64 * MB)
        with small.hold("other") as other, small.hold(WORKSPACE) as memory:
            with pytest.raises(NotFound, match="has no trace 999"):
                await traffic.rows_of_traces(WORKSPACE, "exact", [numbers[6], 999], memory=memory)
            other.reserve(20 * MB)
            with pytest.raises(Busy):
                await traffic.rows_of_traces(WORKSPACE, "exact", [numbers[6]], memory=memory)


async def test_an_evaluator_is_deleted_in_parts_with_its_versions_and_traces(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator_host.platform.evaluators.table._DELETED_AT_ONCE", 4)
    async with opened_store(database_url, tmp_path) as store:
        kept, known = tables(store).evaluators, Traces(store.database)
        for name in ("other", "exact"):
            made = await kept.create_evaluator(WORKSPACE, name, CONTENT)
            for n in range(9):
                await kept.add_version(WORKSPACE, name, replace(CONTENT, digest=f"sha256:{n}"))
            await known.add_traces([replace(TRACE, evaluator_id=made.evaluator_id)] * 10)
        deleted: list[int] = []
        engine = store.database._engine.sync_engine

        def note(_: object, cursor: Any, statement: str, *__: object) -> None:
            deleted.append(cursor.rowcount if statement.startswith("DELETE") else 0)

        event.listen(engine, "after_cursor_execute", note)
        await kept.delete_evaluator(WORKSPACE, "exact")
        assert max(deleted) == 4
        assert sum(deleted) == 10 + 9 + 1  # the newest version is deleted with the evaluator
        with pytest.raises(NotFound):
            await kept.delete_evaluator(WORKSPACE, "exact")
        assert len([one async for part in kept.versions(WORKSPACE, "other") for one in part]) == 10
        assert len(await known.list_traces(WORKSPACE, "other", limit=20)) == 10


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("scores", "mean"),
    [
        ([0.1, 0.1, 0.1], 0.1),
        ([1e308, 1.5e308, 1.7e308], 1.4e308),
        ([-1.7e308, -1.7e308, 0.25], -1.13333333333e308),
        ([1e200, 2e200, None], 1.5e200),
        ([5e-324, 5e-324], 5e-324),
        ([1.0, -1e300, 1e300], 1 / 3),
        ([None, None], None),
        ([], None),
    ],
)
async def test_the_mean_of_live_scores_is_the_same_in_every_database(
    database_url: str, tmp_path: Path, scores: list[float | None], mean: float | None
) -> None:
    async with opened_store(database_url, tmp_path) as store:
        made = await tables(store).evaluators.create_evaluator(WORKSPACE, "exact", CONTENT)
        known = Traces(store.database)
        since = TRACE.received_at - timedelta(seconds=1)
        if scores:
            await known.add_traces([replace(TRACE, evaluator_id=made.evaluator_id, score=one) for one in scores])
        found = await known.live_statistics(WORKSPACE, "exact", since=since)
        assert (found.mean, found.mean_rows) == (
            None if mean is None else pytest.approx(mean, rel=1e-11),
            len(scores) - scores.count(None),
        )


@pytest.mark.parametrize(
    ("doubts", "doubt"),
    [(["no column"] * 2, "2 of 2 scores are doubtful: no column"), (["no column", None], None), ([], None)],
)
async def test_live_scores_are_doubtful_if_each_is(
    database_url: str, tmp_path: Path, doubts: list[str | None], doubt: str | None
) -> None:
    async with opened_store(database_url, tmp_path) as store:
        made = await tables(store).evaluators.create_evaluator(WORKSPACE, "exact", CONTENT)
        failed = replace(TRACE, evaluator_id=made.evaluator_id, status="failed", score=None, passed=None)
        scored = [replace(failed, status="scored", score=1.0, doubt=one) for one in doubts]
        await Traces(store.database).add_traces([failed, *scored])
        since = TRACE.received_at - timedelta(seconds=1)
        assert (await Traces(store.database).live_statistics(WORKSPACE, "exact", since=since)).doubt == doubt
