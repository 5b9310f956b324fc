"""All processes with one database share a workspace's daily budget for models, on both kinds of database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import event

from evaluator_host.engine.config.settings import WorkspaceLimits
from evaluator_host.engine.service.model_grants import RequestUse
from evaluator_host.platform.models.commands import cost_text
from evaluator_host.platform.models.gateway.days import DayBudgets
from evaluator_host.platform.store.store import Store, open_store
from evaluator_host.platform.terminal.summary import usage_text
from evaluator_host.types.evaluator import ModelBudget
from evaluator_host.types.outcome import ModelUsage
from tests.databases import cancelled_at_commit, opened_store
from tests.tables import tables

WORKSPACE = "default"
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def stores(database_url: str, tmp_path: Path) -> AsyncIterator[list[Store]]:
    """Open three stores on one database, as three processes would."""
    async with AsyncExitStack() as opened:
        yield [await opened.enter_async_context(opened_store(database_url, tmp_path)) for _ in range(3)]


def processes(stores: list[Store], budget: ModelBudget) -> list[DayBudgets]:
    return [DayBudgets(budget, store) for store in stores]


async def close(days: list[DayBudgets]) -> None:
    for one in days:
        await one.aclose()


async def ask(days: DayBudgets, times: int) -> int:
    """Make requests at the same time, and return how many the budget allowed."""

    async def one() -> bool:
        if await days.take(WORKSPACE, priced=True) is not None:
            return False
        await asyncio.sleep(0.01)  # simulates the time that a model takes to answer
        days.add(WORKSPACE, "judge", RequestUse(1, 1, 0.1))
        return True

    return sum(await asyncio.gather(*(one() for _ in range(times))))


async def made(store: Store) -> int:
    return sum(one.requests for one in await tables(store).models.list_usage(WORKSPACE))


async def taken(store: Store, most: int) -> int:
    """Return how many of today's `most` requests the processes together have used or reserved."""
    left: list[int] = []

    def note(found: int) -> int:
        left.append(found)
        return 0

    await tables(store).models.take_requests(WORKSPACE, _today(), most=most, wanted=note)
    return most - left[0]


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("most", "used"), [(0, 0), (1, 0), (30, 0), (300, 0), (500, 470), (700, 3)])
async def test_all_processes_together_make_as_many_requests_as_a_day_has(
    stores: list[Store], most: int, used: int
) -> None:
    if used:
        counts = {"requests": used, "replayed": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "unpriced": 0}
        await tables(stores[0]).models.add_usage(WORKSPACE, _today(), {"judge": counts})
    days = processes(stores, ModelBudget(requests=most))
    assert sum(await asyncio.gather(*(ask(one, most - used + 5) for one in days))) == most - used
    assert [await ask(one, 1) for one in days] == [0, 0, 0]
    await close(days)
    assert await made(stores[0]) == await taken(stores[0], most) == most


@pytest.mark.long
async def test_unused_reservations_of_a_process_return_to_the_others(stores: list[Store]) -> None:
    one, two, _ = days = processes(stores, ModelBudget(requests=400))
    assert [await ask(one, 1), await ask(one, 1)] == [1, 1]
    assert await taken(stores[0], 400) > 2, "a process must reserve more than it has used"
    assert await ask(two, 450) == 398
    assert await ask(one, 1) == 0
    await close(days)


async def test_a_process_that_is_killed_loses_its_part_only(stores: list[Store]) -> None:
    one, two, _ = processes(stores, ModelBudget(requests=640))
    assert [await ask(one, 1), await ask(one, 1)] == [1, 1]
    assert one._writing is not None
    one._writing.cancel()  # after this, the first process does not return what it reserved, as if it had been killed
    left = 640 - await taken(stores[0], 640)
    assert left > 620
    assert await ask(two, 700) == left
    await two.aclose()


async def test_use_is_counted_once_if_the_row_that_writes_it_ends_meanwhile(stores: list[Store]) -> None:
    one = DayBudgets(ModelBudget(tokens=100), stores[0])
    one.add(WORKSPACE, "judge", RequestUse(1, 1))
    await cancelled_at_commit(stores[0].database, one.take(WORKSPACE, priced=True))
    await one.aclose()
    assert await made(stores[0]) == 1


@pytest.mark.long
async def test_a_row_that_ends_while_it_asks_loses_no_request(stores: list[Store]) -> None:
    one, two, _ = days = processes(stores, ModelBudget(requests=50))
    rows = [asyncio.create_task(one.take(WORKSPACE, priced=True)) for _ in range(40)]
    await asyncio.sleep(0)
    for row in rows:
        row.cancel()
    await asyncio.gather(*rows, return_exceptions=True)
    done = sum(not row.cancelled() for row in rows)
    assert await ask(two, 60) == 50 - done
    await close(days)


async def test_far_from_its_end_a_day_is_not_asked_for_each_request(stores: list[Store]) -> None:
    one = DayBudgets(ModelBudget(requests=100_000, tokens=10**9, cost=1e9), stores[0])
    await one.take(WORKSPACE, priced=True)
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    engine = stores[0].database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        for _ in range(1000):
            assert await one.take(WORKSPACE, priced=True) is None
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert len([statement for statement in asked if statement.startswith("UPDATE")]) <= 1000 / 64 + 10
    await one.aclose()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("budget", "used"),
    [(ModelBudget(tokens=100), RequestUse(46, 0)), (ModelBudget(cost=10.0), RequestUse(cost=4.6))],
)
async def test_near_their_end_tokens_and_cost_are_those_of_all_processes(
    stores: list[Store], budget: ModelBudget, used: RequestUse
) -> None:
    one, two, three = days = processes(stores, budget)
    for each in (one, two):
        assert await each.take(WORKSPACE, priced=True) is None
        each.add(WORKSPACE, "judge", used)
    while await made(stores[2]) < 2:
        await asyncio.sleep(0.05)
    assert await three.take(WORKSPACE, priced=True) is None
    one.add(WORKSPACE, "judge", used)
    # seconds; while much of the budget is left, more time passes between two readings of the database
    async with asyncio.timeout(0.9):
        while await three.take(WORKSPACE, priced=True) is None:
            await asyncio.sleep(0.02)
    await close(days)


@pytest.mark.long
async def test_a_workspace_may_have_a_budget_of_its_own(database_url: str, tmp_path: Path) -> None:
    own = {WORKSPACE: WorkspaceLimits(model_day=ModelBudget(requests=3))}
    async with open_store(database_url, tmp_path, limits=own) as store:
        other = (await store.workspaces.ensure_workspace("other")).id
        days = DayBudgets(ModelBudget(requests=1), store)
        for workspace, most in ((WORKSPACE, 3), (other, 1)):
            answers = [await days.take(workspace, priced=True) for _ in range(most + 1)]
            assert answers[:most] == [None] * most
            assert f"in one day, may call models at most {most} time" in (answers[most] or "")
        await days.aclose()


async def test_without_a_database_a_process_counts_alone() -> None:
    days = DayBudgets(ModelBudget(requests=2), None)
    assert [await days.take(WORKSPACE, priced=True) for _ in range(3)] == [
        None,
        None,
        "the workspace, in one day, may call models at most 2 times",
    ]
    await days.aclose()


async def test_requests_without_a_price_are_not_counted_as_free(stores: list[Store]) -> None:
    days = DayBudgets(ModelBudget(), stores[0])
    for model, cost in (("free", 0.0), ("unpriced", None), ("both", 0.5), ("both", None)):
        days.add(WORKSPACE, model, RequestUse(1, 1, cost))
    days.add(WORKSPACE, "unpriced", RequestUse(1, 1, None, replayed=True))
    await days.aclose()
    found = await tables(stores[0]).models.list_usage(WORKSPACE)
    told = {one.model: (one.cost, one.unpriced) for one in found}
    assert told == {"free": (0.0, 0), "unpriced": (0.0, 1), "both": (0.5, 1)}
    costs = {one.model: cost_text(one) for one in found}
    assert costs == {"free": "0", "unpriced": "?", "both": "0.5 + ?"}
    assert usage_text(ModelUsage(1, 0, 1, 1, None)) == "1 request, 1 + 1 tokens, cost not known"
