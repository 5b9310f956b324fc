"""Many rows of one evaluator over as many sandboxes as it may have; memory stays flat whatever their number.

Each sandbox draws rows from one shared source, a few ahead of what it has answered. When a sandbox breaks, its row has
an outcome and the rows that were sent after it go to the next sandbox: none is lost, none is scored twice.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from evaluator_host.dialects.model_requests import Ask
from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.errors import Busy, SandboxLost
from evaluator_host.model.evaluator import Isolation, Row
from evaluator_host.model.outcome import ErrorCode, EvaluationError, EvaluationResult, Failed, Given, Outcome, Skipped
from evaluator_host.pool import Lease, Pool
from evaluator_host.sandbox.session import RunnerGaveUp
from evaluator_host.service.model_calls import Models, answered, asked_for
from evaluator_host.service.prepared import Prepared
from evaluator_host.service.row_io import Bound, bind, result

_ASKED: Final = 64  # rows at models at once; others wait where they come from
BUFFERED: Final = 256  # results that may wait for a slow consumer
_PAUSES_S: Final = (0.0, 0.2, 1.0)  # before a sandbox is asked for that was lost while it loaded
_SHARES: Final = count(1)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A row that a sandbox has been given."""

    index: int
    row: Given
    bound: Bound
    at: float


def lost(error: SandboxLost) -> Failed:
    """Return the outcome of a row whose sandbox was lost more than once."""
    if isinstance(error, RunnerGaveUp):
        return error.failed
    return Failed(EvaluationError(ErrorCode.SANDBOX_LOST, error.detail, hint="retry the call"))


class RowStream:
    """One pass over rows. Iterate it once; it yields `(index, result)` as rows finish.

    Args:
      rows: Rows; what stands in the place of one is its outcome.
      isolation: `batch` lets the rows that one sandbox gets share a process or context.
      parallelism: Sandboxes to use at once, at most.
    """

    def __init__(
        self,
        pool: Pool,
        prepared: Prepared,
        rows: Iterable[Given],
        *,
        isolation: Isolation,
        parallelism: int,
        models: Models | None = None,
    ) -> None:
        self._pool = pool
        self._prepared = prepared
        self._source: Iterator[tuple[int, Given]] = enumerate(rows)
        self._returned: deque[tuple[int, Given]] = deque()  # sent ahead to a sandbox that broke
        self._isolation = isolation
        self._parallelism = parallelism
        self._models = models
        self._asked: set[asyncio.Task[None]] = set()  # models, about rows that will return
        self._results: asyncio.Queue[tuple[int, EvaluationResult] | None] = asyncio.Queue(BUFFERED)
        self._lost: dict[int, int] = {}  # rows whose sandbox was lost, and how often
        self._asking = 0  # workers that have a place in the queue
        self._admitted = False  # one of them has had a sandbox
        self._open = 0  # rows drawn and not yet answered
        self._exhausted = False
        self._abandoned = False  # nobody takes results any more

    async def __aiter__(self) -> AsyncGenerator[tuple[int, EvaluationResult], None]:
        """Yield results until every row has one.

        Raises:
          Busy: too many calls wait already.
          SandboxUnavailable: no sandbox can be started.
        """
        producer = asyncio.create_task(self._produce())
        try:
            while (item := await self._results.get()) is not None:
                yield item
            await producer
        finally:
            self._abandoned = True
            producer.cancel()
            await asyncio.wait([producer])

    async def _produce(self) -> None:
        workers = {asyncio.create_task(self._work()) for _ in range(self._parallelism)}
        try:
            pending = workers
            while pending and not self._complete:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for worker in done:
                    worker.result()
        finally:
            for task in (*workers, *self._asked):
                task.cancel()
            await asyncio.wait((*workers, *self._asked))
            if not self._abandoned:
                await self._results.put(None)

    @property
    def _complete(self) -> bool:
        return self._exhausted and not self._returned and not self._open and not self._asked

    async def _work(self) -> None:
        """Use one sandbox after the other until no row is left."""
        while await self._has_more():
            lease = await self._lease()
            if isinstance(lease, Failed):
                await self._fail_all(lease)
                return
            try:
                await self._run(lease)
            finally:
                self._pool.release(lease)

    async def _has_more(self) -> bool:
        """Whether there is a row to be had; waits while all that are left are at models."""
        while not self._returned and (self._exhausted or len(self._asked) >= _ASKED):
            if not self._asked:
                return False
            await asyncio.wait(self._asked, return_when=asyncio.FIRST_COMPLETED)
        return True

    async def _lease(self) -> Lease | Failed:
        """Lease a sandbox. Rows that have a place, or had one, are not turned away half-way: they come back later."""
        while True:
            self._asking += 1
            try:
                lease = await self._lease_one()
            except Busy as error:
                if self._asking == 1 and not self._admitted:
                    raise
                pause_s = error.retry_after_s
            else:
                self._admitted = True
                return lease
            finally:
                self._asking -= 1
            await asyncio.sleep(pause_s)

    async def _lease_one(self) -> Lease | Failed:
        """Lease a sandbox. One that is lost while it loads is tried again: every row that is left depends on it."""
        for pause_s in _PAUSES_S:
            try:
                return await self._pool.lease_sandbox(self._prepared.request)
            except RunnerGaveUp:
                break  # once more, and it is the evaluator's own doing
            except SandboxLost:
                await asyncio.sleep(pause_s)
        try:
            return await self._pool.lease_sandbox(self._prepared.request)
        except SandboxLost as error:
            return lost(error)

    async def _run(self, lease: Lease) -> None:
        """Give rows to one sandbox until none is left or it breaks."""
        sandbox, timeout_s = lease.sandbox, self._prepared.evaluator.limits.timeout_s
        share = f"batch-{next(_SHARES)}" if self._isolation is Isolation.BATCH else None
        sent: deque[_Sent] = deque()
        try:
            while not sandbox.broken:
                while sandbox.room and (item := self._draw()) is not None:
                    index, row = item
                    if isinstance(row, Skipped):
                        await self._answer(index, lease, row)
                        continue
                    bound = self._bound(lease, index, row)
                    if isinstance(bound.body, EvaluationError):
                        await self._answer(index, lease, Failed(bound.body), bound)
                    else:
                        sent.append(_Sent(index, row, bound, time.perf_counter()))
                        sandbox.send(bound.body, timeout_s=timeout_s, share=share)
                if not sent:
                    return
                outcome = await self._receive(lease, sent[0].index)
                if outcome is None:
                    return
                first = sent.popleft()
                if asks := asked_for(outcome, lease.loaded):
                    lease.answered += 1
                    self._ask(first, asks)
                else:
                    await self._answer(first.index, lease, outcome, first.bound, started=first.at)
        finally:
            self._returned.extendleft((item.index, item.row) for item in reversed(sent))
            self._open -= len(sent)

    def _bound(self, lease: Lease, index: int, row: Row | EvaluationError) -> Bound:
        if isinstance(row, Row) and row.index is None and dialect_of(lease.loaded.contract).numbers_rows:
            row = replace(row, index=index)
        return bind(self._prepared, lease.loaded, row)

    def _ask(self, sent: _Sent, asks: tuple[Ask, ...]) -> None:
        """Have models asked about a row, which then is drawn anew."""

        async def ask() -> None:
            given: Given = sent.row
            if isinstance(given, Row):
                given = await answered(self._models, given, asks, workspace=self._prepared.request.workspace)
            self._returned.append((sent.index, given))

        task = asyncio.create_task(ask())
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        self._open -= 1

    async def _receive(self, lease: Lease, index: int) -> Outcome | None:
        """Return the outcome of a row, or None when its sandbox was lost and it should be tried once more."""
        try:
            return await lease.sandbox.receive(timeout_s=self._prepared.evaluator.limits.timeout_s)
        except SandboxLost as error:
            self._lost[index] = self._lost.get(index, 0) + 1
            if self._lost[index] == 1:
                return None
            return lost(error)

    async def _fail_all(self, failed: Failed) -> None:
        """The evaluator does not load: so fails every row."""
        while (item := self._draw()) is not None:
            await self._answer(item[0], None, item[1] if isinstance(item[1], Skipped) else failed)

    def _draw(self) -> tuple[int, Given] | None:
        if not self._returned and len(self._asked) >= _ASKED:
            return None
        item = self._returned.popleft() if self._returned else next(self._source, None)
        if item is None:
            self._exhausted = True
        else:
            self._open += 1
        return item

    async def _answer(
        self,
        index: int,
        lease: Lease | None,
        outcome: Outcome | Skipped,
        bound: Bound | None = None,
        *,
        started: float | None = None,
    ) -> None:
        first = lease is not None and lease.answered == 0
        if lease is not None:
            lease.answered += 1
        scored = result(
            self._prepared,
            lease,
            outcome,
            notes=bound.notes if bound else (),
            started=started or time.perf_counter(),
            first=first,
            backend=self._pool.backend.name,
        )
        await self._results.put((index, scored))
        self._open -= 1
