"""Calls an evaluator in leased sandboxes: for a single row, for many rows, or for rows that are scored together.

All sandboxes take rows from one source. A sandbox gets a few rows in advance, before it has answered earlier rows. When
a sandbox breaks, the row that was running gets an outcome, and the rows after it go to the next sandbox. No row is
lost, and no row is scored twice.

If a sandbox is lost while it loads, or gets no processor time, it is replaced, up to three times. If a row loses its
sandbox, it is called once more in another sandbox; if it got no processor time, twice more. After that, the row fails
because of the loss. If a runner was killed or gave up (exit code 70, runtimes/PROTOCOL.md), the sandbox also counts as
lost. But if the last try ends in this way, the evaluator itself has failed.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Final, TypeAlias

from evaluator_host.engine.contracts.model_requests import Ask
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.pool import Lease, Pool
from evaluator_host.engine.service.advice import with_row_keys
from evaluator_host.engine.service.attempts import (
    LostRows,
    ModelCalls,
    answered,
    asked_for,
    lease_sandbox,
    pause_with,
    settled,
)
from evaluator_host.engine.service.calls_first import CallsFirst
from evaluator_host.engine.service.model_grants import ModelGrant, RowGate
from evaluator_host.engine.service.prepared import Prepared
from evaluator_host.engine.service.row_io import (
    Bound,
    ResultContext,
    bind,
    leased_context,
    result,
    size_bytes,
    unloaded_context,
)
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.types.errors import Busy, HostBusy, SandboxLost
from evaluator_host.types.evaluator import EncodedRow, Isolation, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import (
    EvaluationError,
    EvaluationResult,
    Failed,
    Given,
    Loaded,
    Note,
    Outcome,
    Skipped,
    Timing,
)

_ARRIVED: Final = 256  # maximum number of rows from an asynchronous source that may wait for a sandbox
# maximum number of rows that wait for models at once; until one gets its answer, no further rows are taken
_AT_MODELS: Final = 256
_MEMORY_PER_BYTE: Final = 6  # how many bytes of memory are assumed for a byte of JSON
_SHARES: Final = count(1)

Bind: TypeAlias = Callable[[Loaded, Row | EncodedRow | EvaluationError], Awaitable[Bound]]
"""Returns the body of a row's call, and is called again for each try; returns an error unchanged."""


@dataclass(frozen=True, slots=True)
class Callee:
    """An evaluator that is ready to be called."""

    pool: Pool
    prepared: Prepared
    bind: Bind
    models: ModelCalls | None = None  # answers the model requests of rows; None makes such rows fail
    grant: ModelGrant | None = None  # the models that the evaluator was granted; None if there are none


@dataclass(slots=True)
class CallOutcome:
    """The outcome of one row, with all other facts that its result needs."""

    index: int
    row: Given  # the row, including answers from models
    outcome: Outcome | Skipped
    context: ResultContext
    started: float  # `time.perf_counter()` when the row's time began
    loaded: Loaded | None = None  # None if the evaluator did not load
    notes: tuple[Note, ...] = ()  # notes on the row's arguments
    gate: RowGate | None = None
    first: bool = True  # whether this is the first row of its lease

    @property
    def size(self) -> int:
        """Return roughly how many bytes of memory the row's result takes."""
        requests = self.row.requests if isinstance(self.row, Row | EncodedRow) else ()
        return size_bytes(self.outcome) + (_MEMORY_PER_BYTE * len(encode_json(requests)) if requests else 0)


def row_binder(processes: LimitedProcesses, prepared: Prepared) -> Bind:
    """Return the function that turns an evaluator's rows into calls; the child `processes` read large rows."""
    return partial(bind, processes, prepared)


async def finish(answer: CallOutcome) -> EvaluationResult:
    """Return the result of a row that was answered."""
    row, gate = answer.row, answer.gate
    scored = await result(
        answer.context, answer.outcome, notes=answer.notes, started=answer.started, first=answer.first
    )
    scored = with_row_keys(scored, row, answer.context.prepared.evaluator, answer.loaded)
    if gate is not None:
        scored = replace(scored, usage=gate.usage)
    if isinstance(row, Row | EncodedRow) and row.requests:
        scored = replace(scored, requests=row.requests)
    return scored


@dataclass(slots=True)
class _Sent:
    """A row that was sent to a sandbox, or that does not need a sandbox."""

    index: int
    row: Given
    at: float  # `time.perf_counter()` when the row was first sent
    notes: tuple[Note, ...] = ()  # notes on the row's arguments
    gate: RowGate | None = None


@dataclass(slots=True)
class _Leased:
    """A lease, the common fields of its results, and the rows that its sandbox has not answered yet."""

    lease: Lease
    context: ResultContext
    since: float  # `time.perf_counter()` when the lease's first row began to wait for packages or a sandbox
    sent: deque[_Sent] = field(default_factory=deque)


class RowCalls:
    """Calls an evaluator for all rows of a source. Each run of `work` uses one sandbox at a time."""

    def __init__(
        self,
        callee: Callee,
        rows: Iterable[Given],  # the rows; an error or a `Skipped` in place of a row is that row's outcome
        put: Callable[[CallOutcome], Awaitable[None]],  # takes the answers, in the order in which rows finish
        *,
        numbers: Iterable[int] | None = None,  # numbers of the rows; None to number them by position
        isolation: Isolation = Isolation.ROW,  # `batch` lets the rows that one sandbox gets share a process or context
        # the single calls, which go before the rows of a batch; None for rows in other processes, which do not use
        # this event loop
        calls: CallsFirst | None = None,
        arrive: bool = False,  # whether rows also come through `arrive`
        # `time.perf_counter()` when the time of a single call began; a busy host may refuse that call at any time. None
        # for many rows, which a busy host lets wait once they are under way.
        alone_since: float | None = None,
    ) -> None:
        self._pool = callee.pool
        self._prepared = callee.prepared
        self._bind = callee.bind
        self._source = enumerate(rows) if numbers is None else zip(numbers, rows, strict=True)
        self._arriving = arrive  # whether more rows may still come through `arrive`
        self._put = put
        self._isolation = isolation
        self._models = callee.models
        self._grant = callee.grant
        self._calls = calls if isolation is Isolation.BATCH else None
        self._alone_since = alone_since
        # set when a row has arrived or was taken from the source, or when models have answered
        self._changed = asyncio.Event()
        # rows to call again, in another sandbox or with answers from models
        self._returned: deque[tuple[int, Given]] = deque()
        self._gates: dict[int, RowGate] = {}  # gates of rows that will be called again
        self._sent_at: dict[int, float] = {}  # for each row that will be called again: when it was first sent
        self._at_models: set[asyncio.Task[None]] = set()  # model requests of rows that will be called again
        self._lost = LostRows(callee.prepared.digest)
        self._leasing = 0  # number of runs of `work` that are waiting for a sandbox
        self._admitted = False  # whether a run of `work` has got a sandbox already
        self._open = 0  # number of rows that were taken from the source and are not answered yet
        self._exhausted = False
        self._fault: BaseException | None = None  # the error that a request to models raised

    @property
    def complete(self) -> bool:
        """Return whether every row has an answer."""
        waits = self._returned or self._open or self._at_models or self._fault is not None
        return self._exhausted and not waits

    async def give_way(self) -> None:
        """If these rows belong to a batch in this process, let single calls go before them."""
        if self._calls is not None:
            await self._calls.give_way()

    async def work(self) -> None:
        """Use one sandbox after another until no row is left.

        Raises:
          Busy: too many calls are already waiting.
          HostBusy: no sandbox got enough processor time for a single call.
          SandboxUnavailable: no sandbox can be started.
        """
        while await self._wait_for_more():
            since = time.perf_counter() - self._prepared.environment_ms / 1000
            lease = await self._lease()
            if isinstance(lease, Failed):
                await self._fail_all(lease, since)
                continue
            try:
                await self._run(_Leased(lease, leased_context(self._prepared, lease), since))
            finally:
                self._pool.release(lease)

    async def arrive(self, rows: AsyncIterable[Given]) -> None:
        """Queue rows, which may arrive at any time, as fast as sandboxes take them.

        At most a few hundred rows wait in the queue.
        """
        index = 0
        async for row in rows:
            self._returned.append((index, row))
            index += 1
            self._note_change()
            while len(self._returned) >= _ARRIVED or len(self._at_models) >= _AT_MODELS:
                await self._changed.wait()
        self._arriving, self._exhausted = False, True
        self._note_change()

    async def close(self) -> None:
        """End the requests to models that are under way."""
        for task in self._at_models:
            task.cancel()
        if self._at_models:
            await asyncio.wait(self._at_models)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait_for_more(self) -> bool:
        """Wait until a row can be taken. Return False once no more rows can arrive, and no row waits for a model."""
        while not self._returned and (self._arriving or self._exhausted or len(self._at_models) >= _AT_MODELS):
            if self._fault is not None:
                raise self._fault
            if not self._arriving and not self._at_models:
                return False
            await self._changed.wait()
        return True

    async def _lease(self) -> Lease | Failed:
        """Lease a sandbox. If the host is busy, raise `Busy` as long as no row has begun; later, wait and try again."""
        while True:
            self._leasing += 1
            try:
                lease = await lease_sandbox(self._pool, self._prepared.request)
            except Busy as error:
                if self._alone_since is not None or (self._leasing == 1 and not self._admitted):
                    raise
                pause_s = error.retry_after_s
            else:
                self._admitted = True
                return lease
            finally:
                self._leasing -= 1
            await asyncio.sleep(pause_s)

    async def _run(self, leased: _Leased) -> None:
        share = f"batch-{next(_SHARES)}" if self._isolation is Isolation.BATCH else None
        sent, sandbox, timeout_s = leased.sent, leased.lease.sandbox, self._prepared.evaluator.limits.timeout_s
        try:
            while not sandbox.broken:
                if self._calls is not None:
                    await self._calls.give_way()
                if self._returned or not self._exhausted:
                    await self._send_ahead(leased, share)
                if not sent:
                    return
                try:
                    outcome = sandbox.receive_at_once() or await sandbox.receive(timeout_s=timeout_s)
                except (SandboxLost, HostBusy) as error:
                    if (lost := self._outcome_of_loss(sent[0].index, error)) is None:
                        return
                    outcome = lost
                first = sent.popleft()
                if asks := asked_for(outcome, leased.lease.loaded):
                    leased.lease.answered += 1
                    self._ask_models(first, asks)
                else:
                    await self._answer(first, leased, outcome if first.gate is None else settled(outcome, first.gate))
        finally:
            if sent:
                self._returned.extendleft((item.index, item.row) for item in reversed(sent))
                self._gates |= {item.index: item.gate for item in sent if item.gate is not None}
                self._sent_at |= {item.index: item.at for item in sent}
                self._open -= len(sent)

    async def _send_ahead(self, leased: _Leased, share: str | None) -> None:
        """Send rows until the sandbox has no more room; answer rows that need no sandbox."""
        lease, timeout_s = leased.lease, self._prepared.evaluator.limits.timeout_s
        numbers = dialect_of(lease.loaded.contract).numbers_rows
        while self._returned or not self._exhausted:
            if not lease.sandbox.room or (self._grant and leased.sent) or (item := self._draw()) is None:
                return
            index, row = item
            at = self._sent_at.pop(index, None) or time.perf_counter()
            if isinstance(row, Skipped):
                await self._answer(_Sent(index, row, at), leased, row)
                continue
            bound = await self._bind(lease.loaded, self._numbered(index, row) if numbers else row)
            gate = self._gates.pop(index, None) or (self._grant.gate() if self._grant is not None else None)
            sending = _Sent(index, row, at, bound.notes, gate)
            if isinstance(bound.body, EvaluationError):
                await self._answer(sending, leased, Failed(bound.body))
            else:
                leased.sent.append(sending)
                if gate is not None:
                    pause_with(gate, self._pool, lease)
                lease.sandbox.send(bound.body, timeout_s=timeout_s, share=share, gate=gate)

    def _numbered(self, index: int, row: Row | EncodedRow | EvaluationError) -> Row | EncodedRow | EvaluationError:
        return row if isinstance(row, EvaluationError) or row.index is not None else replace(row, index=index)

    def _ask_models(self, sent: _Sent, asks: tuple[Ask, ...]) -> None:
        """Send a row's requests to models.

        When the models have answered, the row is called again.
        """

        async def ask() -> None:
            given = sent.row
            if isinstance(given, Row | EncodedRow):
                workspace = self._prepared.request.workspace
                given = await answered(self._models, given, asks, workspace=workspace, gate=sent.gate)
            if sent.gate is not None:
                self._gates[sent.index] = sent.gate
            self._sent_at[sent.index] = sent.at
            self._returned.append((sent.index, given))

        def ended(task: asyncio.Task[None]) -> None:
            self._at_models.discard(task)
            if not task.cancelled():
                self._fault = self._fault or task.exception()
            self._note_change()

        task = asyncio.create_task(ask())
        self._at_models.add(task)
        task.add_done_callback(ended)
        self._open -= 1

    def _outcome_of_loss(self, index: int, error: SandboxLost | HostBusy) -> Failed | None:
        """Count the loss of a row's sandbox; return the row's outcome, or None if the row is tried again.

        Raises:
          HostBusy: the row belongs to a single call, and all its tries are used up.
        """
        failed = self._lost.outcome(index, error)
        if failed is not None and isinstance(error, HostBusy) and self._alone_since is not None:
            raise error
        return failed

    async def _fail_all(self, failed: Failed, since: float) -> None:
        """Answer all remaining rows with the failure of the load; the time of the first row counts from `since`."""
        context = unloaded_context(self._prepared, self._pool.backend.name)
        while (item := self._draw()) is not None:
            index, row = item
            outcome = row if isinstance(row, Skipped) else failed
            await self._put(CallOutcome(index, row, outcome, context, self._alone_since or since))
            self._open -= 1
            since = time.perf_counter()
            context = replace(context, timing_ms=Timing())
            # only the first row's error has the `fix`, which may be large
            failed = replace(failed, error=replace(failed.error, fix=None))

    def _draw(self) -> tuple[int, Given] | None:
        if not self._returned and len(self._at_models) >= _AT_MODELS:
            return None
        item = self._returned.popleft() if self._returned else next(self._source, None)
        if item is not None:
            self._open += 1
            self._exhausted = self._exhausted or self._alone_since is not None
            if self._arriving:
                self._note_change()
        elif not self._arriving:
            self._exhausted = True
        return item

    async def _answer(self, sent: _Sent, leased: _Leased, outcome: Outcome | Skipped) -> None:
        lease = leased.lease
        first = lease.answered == 0
        lease.answered += 1
        started = self._alone_since or (min(sent.at, leased.since) if first else sent.at)
        answer = CallOutcome(
            sent.index, sent.row, outcome, leased.context, started, lease.loaded, sent.notes, sent.gate, first
        )
        await self._put(answer)
        self._open -= 1


async def call_once(callee: Callee, row: Row | EncodedRow, *, since: float) -> CallOutcome:
    """Call an evaluator for one row, and return the answer; time counts from `since`, a value of `time.perf_counter()`.

    Raises:
      Busy: too many calls are already waiting.
      HostBusy: no sandbox got enough processor time for the call.
      SandboxUnavailable: no sandbox can be started.
    """
    answers: list[CallOutcome] = []

    async def put(answer: CallOutcome) -> None:
        answers.append(answer)

    calls = RowCalls(callee, (row,), put, alone_since=since)
    try:
        await calls.work()
    finally:
        await calls.close()
    return answers[0]
