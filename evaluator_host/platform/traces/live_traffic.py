"""Groups spans from exporters by trace, and scores each trace once, when it is complete.

A trace arrives in batches of ended spans; each service that takes part in the trace sends its own batches. A trace with
a root counts as complete `QUIET_S` seconds after its last span, a trace without a root after `SILENT_S` seconds. The
traces of a session can be scored together. The exporter's URL may set other seconds. Later spans are refused. Until a
trace is scored, it is only in memory, as JSON. Workspaces share memory and processor time: however many spans one
workspace sends, a quarter of the memory is left for other workspaces.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from evaluator_host.engine.contracts.otlp import TRACE_SPANS
from evaluator_host.engine.pool.fair_share import SANDBOXES_PER_FREE
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.system.memory import Reservation
from evaluator_host.engine.system.threads import work_for
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry
from evaluator_host.platform.store.usage import StorageUsage
from evaluator_host.platform.traces.export import TraceSpans, read_request, traces_of
from evaluator_host.platform.traces.recent import RecentTraces
from evaluator_host.platform.traces.table import ScoredTrace, Traces
from evaluator_host.types.errors import Busy, HostError, NotFound, TooLarge
from evaluator_host.types.evaluator import EncodedRow
from evaluator_host.types.json_values import encode_json, memory_bytes
from evaluator_host.types.names import counted
from evaluator_host.types.outcome import EvaluationResult
from evaluator_host.types.stored import TraceReport
from evaluator_host.types.warnings import doubt_of

# seconds without a span after which a trace with a root is scored; exporters send every 5 seconds
QUIET_S: Final = 6.0
# seconds without a span after which a trace without a root is scored; its root may still be running
SILENT_S: Final = 120.0
SESSION_QUIET_S: Final = 60.0  # seconds without a span after which a session is complete
_LOOK_EVERY_S: Final = 0.25
_HELD_BYTES: Final = 64 << 20
_OF_EACH_BYTES: Final = 2048  # bytes that a trace takes besides its spans
_OF_ID_BYTES: Final = 256  # bytes that the id of a session's trace takes
_ADDED_AT_ONCE: Final = 1000
_TRACE_BYTES: Final = 16 << 20
# memory that traces may take once converted to rows, in MB: a million small objects, which take 25 ms to free
_ROWS_MB: Final = 128
_AT_ONCE: Final = 16
# seconds before each retry after an error with a status in `_LACKING`
_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0)
_LACKING: Final = frozenset({429, 503})
_CANCEL_S: Final = 2.0

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


# seconds without a new span after which a trace or session is complete: if it has a root, and if it has none
_Waits = tuple[float, float]


class _Key(NamedTuple):
    workspace: str
    reference: str
    trace_id: str


@dataclass(slots=True)
class _Pending:
    groups: list[bytes] = field(default_factory=list)
    size: int = _OF_EACH_BYTES
    spans: int = 0
    rooted: bool = False
    refused: bool = False  # whether the trace has become too large, so that its spans are dropped
    last: float = 0.0
    waits_s: _Waits = (QUIET_S, SILENT_S)
    version: int | None = None  # version of the evaluator when the last span arrived
    traces: set[str] = field(default_factory=set)  # ids of the session's traces; empty for a single trace

    def due(self, now: float) -> bool:
        return now - self.last > self.waits_s[0 if self.rooted else 1]


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """One request of an exporter: its body, which may be compressed, its content type and its encoding."""

    body: bytes
    media_type: str
    encoding: str = ""


class Traffic:
    """Scores the traces of live traffic. Use it in one event loop only.

    Attributes:
      dropped: Number of traces that were not scored, or not stored.
      late: Number of spans that were refused because the scoring of their trace had begun.
    """

    def __init__(self, service: Service, registry: EvaluatorRegistry, store: Traces, usage: StorageUsage) -> None:
        self.dropped = 0
        self.late = 0
        self._service = service
        self._registry = registry
        self._store = store
        self._usage = usage
        self._arrived = asyncio.Event()
        self._pending: dict[_Key, _Pending] = {}
        self._sessions: dict[_Key, str] = {}  # the session of each trace that waits to be scored
        self._begun = RecentTraces()
        self._due: dict[str, deque[tuple[_Key, _Pending]]] = {}
        self._held: Counter[str] = Counter()  # bytes that each workspace's traces take in memory
        self._turns = Turns(_AT_ONCE)
        self._workers: dict[asyncio.Task[None], str] = {}
        # for each workspace and evaluator, why traces were dropped; emptied when the reasons are logged
        self._untold: dict[tuple[str, str], list[str]] = {}
        # for each evaluator, the number of late spans; emptied when it is logged
        self._untold_late: Counter[str] = Counter()
        service.metrics.watch("traces_waiting", "Traces that wait to be scored.", lambda: self.waiting)
        service.metrics.watch("traces_dropped", "Traces that were not scored or not stored.", lambda: self.dropped)
        service.metrics.watch("traces_late_spans", "Spans that came after their trace was scored.", lambda: self.late)

    @property
    def waiting(self) -> int:
        """Number of traces that are not complete yet, or that wait to be scored."""
        return len(self._pending) + sum(map(len, self._due.values()))

    async def accept_spans(
        self,
        workspace_id: str,
        reference: str,
        export: ExportRequest,
        *,
        sampling: float | None = None,
        by_session: bool = False,
        quiet_s: float | None = None,
    ) -> int:
        """Add the spans of an export to their traces. Return how many were refused.

        Spans are refused if their trace is too large, or if its scoring has begun.

        Args:
          workspace_id: Owner of the evaluator.
          reference: Evaluator, with or without version: `latency`, `latency@2`.
          export: The exporter's request.
          sampling: Fraction of traces to score, 0 to 1; None for the evaluator's own rate. The choice depends only on
            trace ids, so that all spans of a trace are chosen, or none.
          by_session: Whether the traces of a session are scored together.
          quiet_s: Seconds after the last span at which a trace or session is scored; None for the usual number. A trace
            without a root waits for at least `SILENT_S`.

        Raises:
          NotFound: there is no such evaluator.
          InvalidRequest: the body is not an OTLP export.
          TooLarge: the body is over the limit, `EVALUATOR_HOST_TRACES_MB`, or has over 10,000 spans.
          Busy: the waiting spans of this workspace, or of all workspaces, have reached their memory limit.
          OverQuota: the workspace has reached its quota.
        """
        await self._usage.require_room(workspace_id)
        rooted_s = quiet_s or (SESSION_QUIET_S if by_session else QUIET_S)
        waits_s = (rooted_s, rooted_s if by_session else max(rooted_s, SILENT_S))
        found = await self._registry.resolve(workspace_id, reference)
        self._require_room(workspace_id, 1)
        answer = await self._service.processes.call(
            workspace_id,
            read_request,
            export.body,
            export.media_type,
            export.encoding,
            self._service.settings.traces_mb << 20,
            found.sampling if sampling is None else sampling,
            "session" if by_session else "trace",
        )
        traces = list(traces_of(answer))
        size = len(answer) + sum(_OF_EACH_BYTES + len(one.traces) * _OF_ID_BYTES for one in traces)
        refused = 0
        self._require_room(workspace_id, size)
        self._held[workspace_id] += size
        try:
            for number, one in enumerate(traces, 1):
                key, version = self._key_of(workspace_id, reference, one), found.evaluator.version
                refused += self._add(key, one, time.monotonic(), waits_s, version)
                if number % _ADDED_AT_ONCE == 0:
                    await asyncio.sleep(0)
        finally:
            self._held[workspace_id] -= size
        return refused

    def _require_room(self, workspace: str, size: int) -> None:
        """Check that a workspace may use `size` more bytes: up to three times the memory that then stays free.

        The first request of a workspace is always accepted.
        """
        own, free = self._held[workspace], _HELD_BYTES - self._held.total() - size
        if own and own + size > SANDBOXES_PER_FREE * free:
            raise Busy(
                "too many spans are waiting to be scored; send these later, or send a smaller sample", retry_after_s=2.0
            )

    def _key_of(self, workspace: str, reference: str, spans: TraceSpans) -> _Key:
        """Return the key of a trace, or of the trace's session if one of its spans has named the session."""
        key = _Key(workspace, reference, spans.trace_id)
        return key if spans.traces else key._replace(trace_id=self._sessions.get(key, spans.trace_id))

    def _take(self, key: _Key, traces: Iterable[str]) -> list[_Pending]:
        """Remove and return the waiting spans of these traces, when a later span has named the traces' session."""
        own = (key._replace(trace_id=trace_id) for trace_id in traces)
        return [self._pending.pop(one) for one in own if one != key and one in self._pending]

    def _join(self, key: _Key, session: _Pending, traces: Iterable[str], waiting: list[_Pending]) -> None:
        """Add these traces, and their spans that have waited, to their session."""
        added = set(traces) - session.traces
        self._sessions |= {key._replace(trace_id=trace_id): key.trace_id for trace_id in added}
        session.traces |= added
        session.size += len(added) * _OF_ID_BYTES
        self._held[key.workspace] += len(added) * _OF_ID_BYTES
        for earlier in waiting:
            session.groups += earlier.groups
            session.spans += earlier.spans
            session.size += earlier.size - _OF_EACH_BYTES
            self._held[key.workspace] -= _OF_EACH_BYTES

    def _add(self, key: _Key, spans: TraceSpans, now: float, waits_s: _Waits, version: int | None) -> int:
        """Add spans to their trace or session. Return how many spans were refused.

        If a trace becomes too large, its earlier spans are refused, too.
        """
        pending = self._pending.get(key)
        if pending is None:
            if self._begun.has_all(key.workspace, _named(key, spans.traces, version), now):
                self._arrived.set()
                self.late += spans.spans
                self._untold_late[key.reference] += spans.spans
                return spans.spans
            pending = self._pending[key] = _Pending()
            self._arrived.set()
            self._held[key.workspace] += _OF_EACH_BYTES
        waiting = self._take(key, spans.traces)
        # these are set even if the session is refused, because its next spans would otherwise begin another session
        pending.last, pending.waits_s, pending.version = now, waits_s, version
        if pending.refused:
            # perhaps only this span of the trace names the session; later spans must not be scored as a separate trace
            self._join(key, pending, spans.traces[: max(0, TRACE_SPANS - len(pending.traces))], [])
            self._held[key.workspace] -= sum(one.size for one in waiting)
            return spans.spans + sum(one.spans for one in waiting)
        self._join(key, pending, spans.traces, waiting)
        pending.rooted = pending.rooted or spans.rooted
        pending.spans += spans.spans
        pending.groups.append(spans.groups)
        pending.size += len(spans.groups)
        self._held[key.workspace] += len(spans.groups)
        too_large = pending.spans > TRACE_SPANS or pending.size > _TRACE_BYTES
        if not too_large and not any(one.refused for one in waiting):
            return 0
        kept = _OF_EACH_BYTES + len(pending.traces) * _OF_ID_BYTES
        self._held[key.workspace] -= pending.size - kept
        pending.groups, pending.size, pending.refused = [], kept, True
        return pending.spans

    async def list_traces(
        self,
        workspace_id: str,
        name: str,
        *,
        limit: int = 100,
        before: int | None = None,
        status: str | None = None,
        memory: Reservation,
    ) -> list[TraceReport]:
        """Return scored traces of an evaluator, newest first, at most 16 MB of them; reserve their memory in `memory`.

        Their `result` and `trace` are encoded JSON. `before` is the last number on the previous page.

        Raises:
          NotFound: there is no such evaluator.
          Busy: there is not enough memory now.
        """
        await self._registry.get_evaluator(workspace_id, name)
        found = await self._store.list_traces(workspace_id, name, limit=limit, before=before, status=status)
        memory.add(sum(len(one.result) + len(one.trace) for _, one in found))
        encoded: Any = orjson.Fragment
        return [
            TraceReport(
                number,
                f"{name}@{one.version}",
                one.trace_id,
                one.received_at,
                encoded(one.result),
                encoded(one.trace),
            )
            for number, one in found
        ]

    async def rows_of_traces(
        self, workspace_id: str, name: str, numbers: Sequence[int], *, memory: Reservation
    ) -> list[dict[str, Any]]:
        """Convert an evaluator's scored traces with these numbers to data set rows; reserve their memory in `memory`.

        Raises:
          NotFound: there is no such trace.
          TooLarge: the traces together are too large, or take too much memory as rows.
          Busy: there is not enough memory now.
        """
        found = await self._store.get_traces(workspace_id, name, numbers)
        if missing := [number for number in numbers if number not in found]:
            raise NotFound(f"evaluator {name[:80]} has no trace {missing[0]}; `evaluators traces` lists them")
        encoded = [found[number].encode() for number in numbers]
        weight = await asyncio.to_thread(lambda: sum(map(memory_bytes, encoded)))
        if weight > _ROWS_MB << 20:
            raise TooLarge(
                f"these traces have so many values that they would take about {weight >> 20} MB of memory as rows; "
                f"take fewer at a time, so that they need at most {_ROWS_MB} MB"
            )
        memory.add(weight)
        return await asyncio.to_thread(lambda: [{"inputs": {}, "trace": orjson.loads(one)} for one in encoded])

    async def run(self) -> None:
        """Score complete traces until cancelled. Then score waiting traces until the host must stop; drop the rest."""
        try:
            while True:
                if not self._pending and not self._untold and not self._untold_late:
                    self._arrived.clear()
                    await self._arrived.wait()
                await asyncio.sleep(_LOOK_EVERY_S)
                now = time.monotonic()
                self._begin([key for key, pending in self._pending.items() if pending.due(now)])
                self._tell_dropped()
        except asyncio.CancelledError:
            await self._finish()
            raise

    async def _finish(self) -> None:
        self._begin(list(self._pending))
        left_s = self._service.supervisor.stop_within(self._service.settings.stop_grace_s)
        if self._workers:
            await asyncio.wait(set(self._workers), timeout=left_s)
        for worker in self._workers:
            worker.cancel()
        if self._workers:
            await asyncio.wait(set(self._workers), timeout=_CANCEL_S)
        for key, _ in (one for due in self._due.values() for one in due):
            self._drop(key, "the host is stopping")
        self._tell_dropped()

    def _begin(self, keys: list[_Key]) -> None:
        """Queue these traces for scoring. Workspaces take turns."""
        for key in keys:
            pending = self._pending.pop(key)
            self._begun.add(key.workspace, _named(key, pending.traces, pending.version), time.monotonic())
            for trace_id in pending.traces:
                self._sessions.pop(key._replace(trace_id=trace_id), None)
            self._due.setdefault(key.workspace, deque()).append((key, pending))
        for workspace in {key.workspace for key in keys}:
            running = sum(one == workspace for one in self._workers.values())
            for _ in range(min(_AT_ONCE, len(self._due[workspace])) - running):
                worker = asyncio.create_task(self._work(workspace))
                self._workers[worker] = workspace
                worker.add_done_callback(self._workers.pop)

    async def _work(self, workspace: str) -> None:
        work_for(workspace)
        while self._due.get(workspace):
            async with self._turns.turn(workspace):
                if not self._due.get(workspace):
                    return
                key, pending = self._due[workspace].popleft()
                try:
                    await self._score(key, pending)
                finally:
                    self._held[workspace] -= pending.size
        self._due.pop(workspace, None)
        if not self._held[workspace]:
            del self._held[workspace]

    async def _score(self, key: _Key, pending: _Pending) -> None:
        """Score a trace and store its result. Try again if the store or a sandbox is not available for a moment."""
        if pending.refused:
            self._drop(key, f"it has over {TRACE_SPANS} spans or {_TRACE_BYTES >> 20} MB")
            return
        try:
            scored = await _patiently(lambda: self._scored(key, pending))
            await _patiently(lambda: self._store.add_traces([scored]))
        except HostError as error:
            self._drop(key, error.detail)
        except asyncio.CancelledError:
            self._drop(key, "the host is stopping")
            raise
        except Exception as error:  # noqa: BLE001 - one trace must not end the scoring of the others
            self._drop(key, "the host failed")
            _log.error("a trace was not scored", exc_info=error)

    async def _scored(self, key: _Key, pending: _Pending) -> ScoredTrace:
        found = await self._registry.resolve(key.workspace, key.reference)
        trace = b'{"resourceSpans":[' + b",".join(pending.groups) + b"]}"
        row = EncodedRow({"trace": trace})
        result = await self._service.evaluate(found.evaluator, row, caller=Caller(key.workspace, found.lock))
        return _stored(found.evaluator_id, found.evaluator.version or 0, key.trace_id, trace, result)

    def _drop(self, key: _Key, reason: str) -> None:
        self.dropped += 1
        self._arrived.set()
        self._untold.setdefault((key.workspace, key.reference), []).append(f"{key.trace_id}: {reason}")

    def _tell_dropped(self) -> None:
        for (_, reference), reasons in self._untold.items():
            dropped = counted(len(reasons), "trace")
            _log.warning("%s could not be scored by %s; the last one: %s", dropped, reference, reasons[-1])
        self._untold.clear()
        for reference, spans in self._untold_late.items():
            late = counted(spans, "span")
            _log.warning("%s for %s came after their trace was scored; give a longer quiet_s", late, reference)
        self._untold_late.clear()


def _named(key: _Key, traces: Iterable[str], version: int | None) -> list[tuple[str, str]]:
    """Return `(reference and version of the evaluator, trace id)` for a single trace, or each trace of a session."""
    return [(f"{key.reference} {version}", trace_id) for trace_id in traces or (key.trace_id,)]


async def _patiently(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run `work` and return its result. After an error with status 429 or 503, try again for up to 90 s."""
    for pause_s in _PAUSES_S:
        try:
            return await work()
        except HostError as error:
            if error.status not in _LACKING:
                raise
        await asyncio.sleep(pause_s)
    return await work()


def _stored(evaluator_id: str, version: int, trace_id: str, trace: bytes, result: EvaluationResult) -> ScoredTrace:
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
        trace=trace.decode(),
        doubt=doubt_of(result),
    )
