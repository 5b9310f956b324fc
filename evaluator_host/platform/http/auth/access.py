"""Decides who may call the API and how often, and records the calls. Middleware and routes share one `Access`."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Annotated, Final, TypeAlias

from fastapi import Depends
from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service.prepared import evaluator_digest
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.engine.system.threads import work_for
from evaluator_host.engine.system.turns import Shares
from evaluator_host.platform.http.auth.keyring import REFRESH_S, KeyHolder, Keyring
from evaluator_host.platform.http.auth.package_visibility import PackageVisibility
from evaluator_host.platform.http.event_streams import EventStreams
from evaluator_host.platform.store.audit import AuditEntry, AuditLog
from evaluator_host.platform.store.store import Store
from evaluator_host.types.errors import HostError, RateLimited, StoreUnavailable
from evaluator_host.types.evaluation import Batch, CheckReport
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.outcome import EvaluationError, EvaluationResult

_CALLER = "evaluator_host.caller"

_UPLOADS: Final = 32  # maximum number of uploads at the same time; each has an open file besides its connection
_FORGET_S: Final = 60.0  # maximum number of seconds between two searches for full rate limit buckets, which are dropped
_BUCKETS_KEPT: Final = 10_000  # maximum number of buckets to keep; beyond that, full ones are dropped

_log = logging.getLogger(__name__)
ABANDONED = "abandoned"
_SUBJECT_CHARS: Final = 80  # maximum number of characters in an audit entry's subject; valid names and ids are shorter
_ADDRESSES: Final = 1_000  # maximum number of addresses whose refused requests are counted
_REFUSALS_S: Final = 60.0  # seconds between two log lines about refused keys
_OK = "ok"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often a key may call: `burst` requests at once after a pause, and `per_s` requests per second.

    `per_s` is None if there is no limit.
    """

    per_s: float | None
    burst: float

    def filled(self, left: float, since_s: float) -> float:
        """Return how many tokens a bucket has now if it had `left` tokens `since_s` seconds ago."""
        return min(self.burst, left + since_s * (self.per_s or 0.0))


@dataclass(frozen=True, slots=True)
class _Bucket:
    rate: Rate
    left: float  # tokens left
    at: float  # time at which the tokens were counted

    def is_full(self, now: float) -> bool:
        return self.rate.filled(self.left, now - self.at) >= self.rate.burst


class RateLimiter:
    """Limits how often each key may call: one token bucket per key, refilled at a steady rate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._forget_at = 0.0
        self._buckets: dict[str | None, _Bucket] = {}  # buckets, keyed by the id of the API key

    def count_request(self, key_id: str | None, rate: Rate) -> None:
        """Count one request of a key; raise when the key is over its rate limit.

        Raises:
          RateLimited: the key has sent too many requests; this request is not counted.
        """
        if rate.per_s is None:
            return
        now = self._clock()
        last = self._buckets.get(key_id)
        left = rate.burst if last is None else rate.filled(last.left, now - last.at)
        if left < 1.0:
            wait_s = (1.0 - left) / rate.per_s
            raise RateLimited(
                f"this key may make {rate.burst:g} calls at once, and then {rate.per_s:g} per second; try again in "
                f"{max(1, round(wait_s))} s, or send more rows per request",
                retry_after_s=wait_s,
            )
        self._buckets[key_id] = _Bucket(rate, left - 1.0, now)
        if len(self._buckets) > _BUCKETS_KEPT and now >= self._forget_at:
            self._forget_full(now, min(rate.burst / rate.per_s, _FORGET_S))

    def _forget_full(self, now: float, again_s: float) -> None:
        self._forget_at = now + again_s
        self._buckets = {key: one for key, one in self._buckets.items() if not one.is_full(now)}


class Access:
    """The keys, rate limits, audit log and visible package sets of one host. Use it in one event loop only."""

    def __init__(self, store: Store, settings: Settings, connections: int, *, parts: int = 1) -> None:
        self.keyring = Keyring(store.keys)
        self._rates = RateLimiter()
        self._limits = store.limits
        self._host_rate = settings.rate_limit_per_s, settings.rate_limit_burst
        self._divided = settings.replicas * parts
        self._rate = self._divided_rate(*self._host_rate)
        self.audit_log = AuditLog(store.audit)
        self.package_visibility = PackageVisibility(store.package_sets)
        self.streams = EventStreams(-(-settings.event_streams // settings.replicas))
        self.requests = Shares(connections, "requests")
        self.uploads = Shares(_UPLOADS, "uploads")
        self._failing: set[str] = set()
        self._refused, self._refusals_at = Counter[str](), -_REFUSALS_S

    async def count_request(self, caller: KeyHolder) -> None:
        """Count one request of a caller; raise when its key is over the rate limit of the workspace or the host.

        Raises:
          RateLimited: the key has sent too many requests; this request is not counted.
          StoreUnavailable: the database does not answer.
        """
        own, rate = await self._limits.of(caller.workspace), self._rate
        if own.rate_limit_per_s is not None or own.rate_limit_burst is not None:
            per_s, burst = self._host_rate
            rate = self._divided_rate(own.rate_limit_per_s or per_s, own.rate_limit_burst or burst)
        self._rates.count_request(caller.key_id, rate)

    def _divided_rate(self, per_s: float | None, burst: int) -> Rate:
        """Return the part of a rate limit that this process may use."""
        return Rate(per_s and per_s / self._divided, float(-(-burst // self._divided)))

    def note_refusal(self, address: str) -> None:
        """Count a request from this address that was refused because of a missing or invalid key."""
        if len(self._refused) < _ADDRESSES or address in self._refused:
            self._refused[address] += 1

    def _log_refusals(self) -> None:
        if self._refused and time.monotonic() - self._refusals_at >= _REFUSALS_S:
            by_address = ", ".join(f"{count} from {address}" for address, count in self._refused.most_common(5))
            _log.warning("requests were refused because their keys are missing or not valid: %s", by_address)
            self._refused.clear()
            self._refusals_at = time.monotonic()

    def dropped(self) -> float:
        """Return the number of audit entries that were dropped because the database was down for too long."""
        return float(self.audit_log.dropped)

    async def run(self) -> None:
        """Refresh the keys and write waiting audit entries every second until cancelled."""
        while True:
            await asyncio.sleep(REFRESH_S)
            await self.keep()

    async def keep(self) -> None:
        """Refresh the keys and write waiting audit entries once."""
        await self._try("keys cannot be refreshed", self.keyring.refresh)
        await self._write()
        self._log_refusals()

    async def close(self) -> None:
        """Write the waiting audit entries."""
        await self._try("the times at which keys were last used are lost", self.keyring.write_uses)
        await self._write()

    async def _write(self) -> None:
        await self._try("audit entries cannot be stored yet", self.audit_log.write)
        await self._try("requested package sets cannot be recorded yet", self.package_visibility.write)

    async def _try(self, failure: str, chore: Callable[[], Awaitable[None]]) -> None:
        """Run `chore`. If the store does not answer, log `failure`, but only once until `chore` succeeds."""
        try:
            await chore()
        except StoreUnavailable as error:
            if failure not in self._failing:
                _log.warning("%s: %s", failure, error.detail)
                self._failing.add(failure)
        except Exception as error:  # noqa: BLE001 - a failing chore must not stop the others: revoked keys would stay valid
            _log.error("%s", failure, exc_info=error)
        else:
            self._failing.discard(failure)


@asynccontextmanager
async def open_access(
    store: Store, settings: Settings, supervisor: Supervisor, *, connections: int, parts: int = 1
) -> AsyncIterator[Access]:
    """Yield an `Access` that is kept up to date during the block; then write the waiting audit entries.

    All workspaces together may have `connections` requests at a time. Each of the host's `parts` processes gets an
    equal part of the rate limits.

    Raises:
      StoreUnavailable: the database does not answer.
    """
    access = Access(store, settings, connections, parts=parts)
    await access.keyring.refresh()
    try:
        async with supervisor.running("the task that refreshes keys and writes the audit log", access.run):
            yield access
    finally:
        await access.close()


def set_caller(scope: Scope, caller: KeyHolder) -> None:
    """Store the caller of a request in its scope. From now on, the request's task works for the caller's workspace."""
    scope[_CALLER] = caller
    work_for(caller.workspace)


def caller_of(scope: Scope) -> KeyHolder:
    """Return the caller of a request, which the middleware stored for every route that needs a key."""
    caller: KeyHolder = scope[_CALLER]
    return caller


async def _caller(request: Request) -> KeyHolder:
    return caller_of(request.scope)


async def _workspace(request: Request) -> str:
    return caller_of(request.scope).workspace


CallerOf: TypeAlias = Annotated[KeyHolder, Depends(_caller)]
"""Type of a route's parameter that gets the caller of the request."""

WorkspaceOf: TypeAlias = Annotated[str, Depends(_workspace)]
"""Type of a route's parameter that gets the workspace of the caller."""


class AuditedCall:
    """The audit entry of a running call.

    Call exactly one of `answered`, `failed` and `abandoned`, once, or use this object as a context manager.

    `verb` is `evaluate`, `evaluate_batch`, `check`, `environments.build`, …
    """

    __slots__ = ("_access", "_caller", "_evaluator", "_grants", "_started", "_verb", "rows", "subject")

    def __init__(
        self,
        access: Access,
        caller: KeyHolder,
        verb: str,
        subject: str | None = None,
        *,
        evaluator: Evaluator | None = None,
        rows: int = 0,
    ) -> None:
        self._access = access
        self._caller = caller
        self._verb = verb
        self.subject = subject  # name or id of the object that the call creates, changes or deletes
        self._evaluator = evaluator
        self.rows = rows
        self._grants = evaluator.grants if evaluator is not None else ()  # the grants of the call's evaluators
        self._started = time.perf_counter()

    def note_grants(self, grants: Sequence[str]) -> None:
        """Set the grants of the call's evaluators, if they were not known when the call began."""
        self._grants = tuple(grants)

    def __enter__(self) -> KeyHolder:
        """Begin the block that makes the call, and return the caller."""
        return self._caller

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record how the block ended; a cancelled block is not recorded."""
        if error is None:
            self.answered(None)
        elif isinstance(error, ClientDisconnect):
            self.abandoned()
        elif isinstance(error, Exception):
            self.failed(error)

    def answered(self, value: object) -> None:
        """Record a call that returned a value."""
        if isinstance(value, EvaluationResult):
            failed = value.error is not None
            self._note(value.evaluator.digest, failed=int(failed), outcome=_outcome(value))
        elif isinstance(value, Batch):
            self._note_batch(value)
        elif isinstance(value, CheckReport):
            self._note(self._digest(), failed=0, outcome=_OK if value.ok else "problems")
        else:
            self._note(None, failed=0, outcome=_OK)

    def failed(self, error: BaseException | EvaluationError) -> None:
        """Record a call that raised this error, or that has this error instead of a result."""
        outcome = error.code if isinstance(error, HostError | EvaluationError) else HostError.code
        self._note(self._digest(), failed=self.rows, outcome=outcome)

    def abandoned(self) -> None:
        """Record a call whose caller hung up."""
        self._note(self._digest(), failed=self.rows, outcome=ABANDONED)

    def _note_batch(self, batch: Batch) -> None:
        if not batch.results:
            self._note(self._digest(), failed=0, outcome=_OK)
            return
        first = batch.results[0]
        worst = Counter(batch.summary.errors).most_common(1)
        outcome = worst[0][0] if worst else _outcome(first)
        self._note(first.evaluator.digest, failed=batch.summary.failed, outcome=outcome)

    def _digest(self) -> str | None:
        return evaluator_digest(self._evaluator) if self._evaluator is not None else None

    def _note(self, digest: str | None, *, failed: int, outcome: str) -> None:
        self._access.audit_log.note(
            AuditEntry(
                at=datetime.now(UTC),
                workspace_id=self._caller.workspace,
                key_id=self._caller.key_id,
                verb=self._verb,
                evaluator=digest,
                rows=self.rows,
                failed=failed,
                outcome=outcome,
                duration_ms=round((time.perf_counter() - self._started) * 1000, 3),
                grants=" ".join(self._grants) or None,
                subject=self.subject and self.subject[:_SUBJECT_CHARS],
            )
        )


def _outcome(result: EvaluationResult) -> str:
    return str(result.error.code if result.error is not None else result.status)
