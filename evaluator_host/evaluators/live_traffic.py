"""Collects the spans that exporters send into traces, and scores each complete trace once.

A trace arrives in batches of ended spans, the root last. It counts as complete `QUIET_S` seconds after its last span
when it has a root, and after `SILENT_S` seconds when it has none. Until it is scored, a trace is only in memory.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from evaluator_host.evaluators.registry import EvaluatorRegistry
from evaluator_host.model.errors import Busy, HostError, StoreUnavailable
from evaluator_host.model.evaluator import Json, Row
from evaluator_host.model.json_values import decode_json, encode_json
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.schemas.stored import TraceReport
from evaluator_host.service import Service
from evaluator_host.store.traces import ScoredTrace, Traces
from evaluator_host.traces.otlp import identifier, objects, records

QUIET_S: Final = 1.0  # after the root: spans of other processes may still come
SILENT_S: Final = 15.0  # without a root
_LOOK_EVERY_S: Final = 0.25
_HELD_BYTES: Final = 64 << 20
_AT_ONCE: Final = 16
_PRUNE_EVERY_S: Final = 3600.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Pending:
    """An incomplete trace."""

    groups: list[dict[str, Json]] = field(default_factory=list)
    size: int = 0
    rooted: bool = False
    last: float = 0.0

    def due(self, now: float) -> bool:
        return now - self.last > (QUIET_S if self.rooted else SILENT_S)


class Traffic:
    """Scores the traces of live traffic. Bound to one event loop.

    Args:
      service: Evaluates the traces.
      registry: Finds the evaluators.
      store: Stores the scored traces.
      days: Days to keep scored traces; 0 for ever.
    """

    def __init__(self, service: Service, registry: EvaluatorRegistry, store: Traces, *, days: int) -> None:
        self._service = service
        self._registry = registry
        self._store = store
        self._days = days
        self._pending: dict[tuple[str, str, str], _Pending] = {}
        self._held = 0
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._pruned = time.monotonic()

    async def accept_spans(
        self, workspace_id: str, reference: str, export: dict[str, Json], *, sampling: float | None = None
    ) -> int:
        """Add the spans of an OTLP/JSON export to their traces, and return the number of traces concerned.

        Args:
          workspace_id: Owner of the evaluator.
          reference: `latency` or `latency@2`.
          export: `{"resourceSpans": […]}`.
          sampling: Share of traces to score, 0 to 1; None for the evaluator's own. The choice depends on trace ids
            only, so that all spans of a trace are chosen or none.

        Raises:
          NotFound: there is no such evaluator.
          Busy: the waiting spans have more than 64 MB.
        """
        found = await self._registry.resolve(workspace_id, reference)
        share = found.sampling if sampling is None else sampling
        if self._held > _HELD_BYTES:
            raise Busy("too many spans wait to be scored; send them later, or a smaller sample", retry_after_s=2.0)
        seen = set()
        for trace_id, group in _by_trace(export):
            if _share(trace_id) >= share:
                continue
            seen.add(trace_id)
            pending = self._pending.setdefault((workspace_id, reference, trace_id), _Pending())
            size = len(encode_json(group))
            pending.groups.append(group)
            pending.size += size
            pending.last = time.monotonic()
            pending.rooted = pending.rooted or any(record.parent is None for record in records([group]))
            self._held += size
        return len(seen)

    async def list_traces(
        self, workspace_id: str, name: str, *, limit: int = 100, before: int | None = None, status: str | None = None
    ) -> list[TraceReport]:
        """Return scored traces of an evaluator, the newest first; `before` is the last number of the previous page.

        Raises:
          NotFound: there is no such evaluator.
        """
        await self._registry.get_evaluator(workspace_id, name)
        found = await self._store.list_traces(workspace_id, name, limit=limit, before=before, status=status)
        return [
            TraceReport(
                number,
                f"{name}@{one.version}",
                one.trace_id,
                one.received_at,
                decode_json(one.result.encode()),
                decode_json(one.trace.encode()),
            )
            for number, one in found
        ]

    async def run(self) -> None:
        """Score complete traces until cancelled, then score all waiting traces at once."""
        try:
            while True:
                await asyncio.sleep(_LOOK_EVERY_S)
                now = time.monotonic()
                self._begin([key for key, pending in self._pending.items() if pending.due(now)])
                await self._prune(now)
        finally:
            self._begin(list(self._pending))
            while self._tasks:
                await asyncio.wait(set(self._tasks))

    def _begin(self, keys: list[tuple[str, str, str]]) -> None:
        for key in keys:
            task = asyncio.create_task(self._score(key, self._pending.pop(key)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _score(self, key: tuple[str, str, str], pending: _Pending) -> None:
        workspace_id, reference, trace_id = key
        try:
            async with self._turns:
                found = await self._registry.resolve(workspace_id, reference)
                trace: dict[str, Json] = {"resourceSpans": pending.groups}
                result = await self._service.evaluate(
                    found.evaluator, Row(trace=trace), workspace=workspace_id, lock=found.lock
                )
                await self._store.add_traces(
                    [_scored(found.evaluator_id, found.evaluator.version or 0, trace_id, trace, result)]
                )
        except HostError as error:
            _log.warning("trace %s was not scored by %s: %s", trace_id, reference, error.detail)
        finally:
            self._held -= pending.size

    async def _prune(self, now: float) -> None:
        if not self._days or now - self._pruned < _PRUNE_EVERY_S:
            return
        self._pruned = now
        with suppress(StoreUnavailable):
            await self._store.delete_before(datetime.now(UTC) - timedelta(days=self._days))


@asynccontextmanager
async def open_traffic(
    service: Service, registry: EvaluatorRegistry, store: Traces, *, days: int
) -> AsyncIterator[Traffic]:
    """Yield a `Traffic` that scores traces until the block ends."""
    traffic = Traffic(service, registry, store, days=days)
    async with service.supervisor.running("the scoring of live traffic", traffic.run):
        yield traffic


def _by_trace(export: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield the spans of each trace with their resource and scope; skip values of another shape."""
    for group in objects(export.get("resourceSpans", export.get("resource_spans"))):
        for scoped in objects(group.get("scopeSpans", group.get("scope_spans"))):
            by_trace: dict[str, list[Any]] = {}
            for span in objects(scoped.get("spans")):
                trace_id = identifier(span.get("traceId", span.get("trace_id")))
                if trace_id is not None:
                    by_trace.setdefault(trace_id, []).append(span)
            for trace_id, spans in by_trace.items():
                scope = {"scope": scoped.get("scope"), "spans": spans}
                yield trace_id, {"resource": group.get("resource"), "scopeSpans": [scope]}


def _share(trace_id: str) -> float:
    """Return a number from 0 up to 1 from the last 56 bits of a trace id, which W3C Trace Context wants random."""
    try:
        return int(trace_id[-14:], 16) / 16**14
    except ValueError:
        return 0.0


def _scored(
    evaluator_id: str, version: int, trace_id: str, trace: dict[str, Json], result: EvaluationResult
) -> ScoredTrace:
    return ScoredTrace(
        evaluator_id=evaluator_id,
        version=version,
        trace_id=trace_id,
        received_at=datetime.now(UTC),
        status=result.status.value,
        score=None if result.score is None else float(result.score),
        passed=result.passed,
        error_code=result.error.code.value if result.error else None,
        result=encode_json(result).decode(),
        trace=encode_json(trace).decode(),
    )
