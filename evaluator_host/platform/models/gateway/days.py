"""Keeps each workspace within its daily budget for models, across all processes and hosts of one database.

Before a process makes requests, it takes them from the day's budget in the database: as many as are waiting, and some
more if much of the budget is left. After a second, the process gives unused requests back. If the process does not know
whether the database made a change, the requests count as made, so that the budget is never exceeded.
"""

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from evaluator_host.engine.service.model_grants import Meter, RequestUse
from evaluator_host.engine.system.threads import work_for
from evaluator_host.platform.models.table import ModelTable
from evaluator_host.types.errors import StoreUnavailable
from evaluator_host.types.evaluator import ModelBudget
from evaluator_host.types.models import DayUsage

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

DAY_SPENT: Final = (
    "this is the operator's limit for a day (EVALUATOR_HOST_MODEL_DAY, EVALUATOR_HOST_WORKSPACE_LIMITS), which starts "
    "again at 00:00 UTC; wait until then, or ask the operator to raise it"
)
_PARTS: Final = 64  # a process takes at most a 64th of the remaining requests, unless more requests are waiting
_PART: Final = 64  # maximum number of requests to take in advance: the budget loses them if the process is killed
_FLUSH_S: Final = 1.0  # seconds after which counts are written and unused requests are given back
_GIVEN_BACK_S: Final = 1.5 * _FLUSH_S  # seconds after which other processes have given back their unused requests
_SPENT_S: Final = 5.0  # seconds until a spent budget is checked again
_FRESH_S: Final = 1.0  # seconds until the other processes' tokens and cost are read again
_NEAR: Final = 0.9  # fraction of a budget; if more tokens or cost are used, both are read before each request
_COUNTS: Final = ("requests", "replayed", "input_tokens", "output_tokens", "cost", "unpriced")


@dataclass(slots=True)
class _Day:
    """The part of a workspace's budget for one day that this process has used or reserved."""

    workspace: str
    date: str
    budget: ModelBudget
    meter: Meter
    read_at: float = float("-inf")  # when tokens and cost were last read from the database
    held: int = 0  # number of requests that were taken from the budget, but not made yet
    waiting: int = 0  # number of requests that wait to be taken from the budget
    spent_until: float = float("-inf")
    waited: bool = False  # whether this process has waited for other processes to give requests back, and got none
    taking: asyncio.Task[None] | None = None

    @property
    def near(self) -> bool:
        """Return whether the used tokens or cost are near the limit."""
        budget, tokens = self.meter.budget, self.meter.input_tokens + self.meter.output_tokens
        return (budget.tokens is not None and tokens >= _NEAR * budget.tokens) or (
            budget.cost is not None and (self.meter.cost or 0.0) >= _NEAR * budget.cost
        )


class DayBudgets:
    """Counts the use of models by each workspace today (UTC). Use it in one event loop only.

    `budget` applies to each workspace for which the operator has set no other budget. `store` is None on the command
    line, where only this process counts.
    """

    def __init__(self, budget: ModelBudget, store: "Store | None") -> None:
        self._budget = budget
        self._store = store
        self._days: dict[str, _Day] = {}
        self._unwritten: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(dict)
        self._writing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._hurry = asyncio.Event()
        self._closed = False

    async def take(self, workspace: str, *, priced: bool) -> str | None:
        """Count one request that is about to be made. Return None, or the reason why the request may not be made.

        Args:
          workspace: The workspace that makes the request.
          priced: Whether the request's model has a price.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        day = await self._today(workspace)
        if day.budget == ModelBudget():
            return None
        if (why := day.meter.refusal(priced=priced)) is not None:
            return why
        if self._store is None:
            day.meter.begin()
            return None
        await self._read(self._store, day)
        why = day.meter.refusal(priced=priced)
        if why is None and day.budget.requests is not None and not await self._take(self._store, day):
            why = day.meter.too_many(day.budget.requests)
        return why

    def add(self, workspace: str, model: str, used: RequestUse) -> None:
        """Count the tokens and cost of a request; these are written to the database within a second."""
        date = _date()
        counts = self._unwritten[workspace, date].setdefault(model, dict.fromkeys(_COUNTS, 0))
        counts["replayed" if used.replayed else "requests"] += 1
        if not used.replayed:
            counts["input_tokens"] += used.input_tokens
            counts["output_tokens"] += used.output_tokens
            counts["cost"] += used.cost or 0.0
            counts["unpriced"] += used.cost is None
        day = self._days.get(workspace)
        if day is not None and day.date == date:
            day.meter.add(used)
            if day.near:
                self._hurry.set()
        self._write_later()

    async def aclose(self) -> None:
        """Give unused requests back, and write the usage counts that are not written yet."""
        self._closed = True
        self._hurry.set()
        tasks = [day.taking for day in self._days.values() if day.taking is not None]
        for task in tasks:
            task.cancel()
        writing = [self._writing] if self._writing is not None else []
        await asyncio.gather(*tasks, *writing, return_exceptions=True)
        with suppress(StoreUnavailable):
            await self._write()

    async def _today(self, workspace: str) -> _Day:
        own = None if self._store is None else (await self._store.limits.of(workspace)).model_day
        date, known = _date(), self._days.get(workspace)
        if known is None or known.date != date:
            budget = self._budget if own is None else own
            counted = budget if self._store is None else ModelBudget(None, budget.tokens, budget.cost)
            meter = Meter(counted, "the workspace, in one day,")
            known = self._days[workspace] = _Day(workspace, date, budget, meter)
        return known

    async def _read(self, store: "Store", day: _Day) -> None:
        """Read the tokens and the cost that all processes have used.

        Do nothing if this process read them a moment ago and much of the budget is left.
        """
        if day.budget.tokens is None and day.budget.cost is None:
            return
        now = asyncio.get_running_loop().time()
        if now - day.read_at < _FRESH_S and not day.near:
            return
        await self._write()
        _fill(day.meter, await ModelTable(store.database).list_usage(day.workspace, since=day.date))
        day.read_at = now

    async def _take(self, store: "Store", day: _Day) -> bool:
        """Take one of the day's requests. Return False if none is left."""
        loop = asyncio.get_running_loop()
        while not day.held:
            if loop.time() < day.spent_until:
                return False
            if day.taking is None or day.taking.done():
                day.taking = loop.create_task(self._take_part(store, day))
            day.waiting += 1
            try:
                # the task is shielded, because the requests that it takes must not be lost when this row ends
                await asyncio.shield(day.taking)
            finally:
                day.waiting -= 1
        day.held -= 1
        return True

    async def _take_part(self, store: "Store", day: _Day) -> None:
        """Take requests for waiting callers, and some more. If none are left, wait a moment and try once more."""

        def wanted(left: int) -> int:
            return min(left, max(day.waiting, 1, min(_PART, left // _PARTS)))

        most = day.budget.requests or 0
        for wait_s in (0.0,) if day.waited else (0.0, _GIVEN_BACK_S):
            await asyncio.sleep(wait_s)
            if more := await ModelTable(store.database).take_requests(
                day.workspace, day.date, most=most, wanted=wanted
            ):
                day.held, day.waited = day.held + more, False
                self._write_later()
                return
        day.waited = True
        day.spent_until = asyncio.get_running_loop().time() + _SPENT_S

    def _write_later(self) -> None:
        if self._store is not None and (self._writing is None or self._writing.done()):
            self._writing = asyncio.get_running_loop().create_task(self._write_soon())

    async def _write_soon(self) -> None:
        work_for("")  # this work is for all workspaces, not for that of the first request
        while not self._closed and (self._unwritten or any(day.held for day in self._days.values())):
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_S):
                    await self._hurry.wait()
            self._hurry.clear()
            with suppress(StoreUnavailable):  # if the database does not answer, the counts are written next time
                await self._write()

    async def _write(self) -> None:
        """Write what is not written yet, to the end even if the caller is cancelled: counts would be written twice."""
        if self._store is not None:
            await asyncio.shield(asyncio.create_task(self._write_to(ModelTable(self._store.database))))

    async def _write_to(self, table: ModelTable) -> None:
        async with self._turn:
            for day in list(self._days.values()):
                unused, day.held = day.held, 0
                if unused:
                    await table.give_back_requests(day.workspace, day.date, unused)
            while self._unwritten:
                (workspace, date), used = self._unwritten.popitem()
                try:
                    await table.add_usage(workspace, date, used)
                except BaseException:
                    _merge(self._unwritten[workspace, date], used)
                    raise


def _merge(into: dict[str, dict[str, float]], used: dict[str, dict[str, float]]) -> None:
    for model, counts in used.items():
        more = into.get(model, {})
        into[model] = {name: count + more.get(name, 0) for name, count in counts.items()}


def _fill(meter: Meter, days: list[DayUsage]) -> None:
    meter.input_tokens = max(meter.input_tokens, sum(one.input_tokens for one in days))
    meter.output_tokens = max(meter.output_tokens, sum(one.output_tokens for one in days))
    meter.cost = max(meter.cost or 0.0, sum(one.cost for one in days))


def _date() -> str:
    return datetime.now(UTC).date().isoformat()
