"""Writes one audit entry per call: who called which verb, how it ended, how long it took."""

import time
from collections import Counter
from datetime import UTC, datetime
from types import TracebackType

from evaluator_host.model.errors import HostError
from evaluator_host.model.evaluator import Evaluator
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.schemas.evaluation import Batch, CheckReport
from evaluator_host.service.prepared import evaluator_digest
from evaluator_host.store.audit import AuditEntry
from evaluator_host.web.auth.access import Access
from evaluator_host.web.auth.keyring import Caller

ABANDONED = "abandoned"
_OK = "ok"


class AuditedCall:
    """A call that has begun. Call exactly one of its methods, once; or use it as a context manager around the call.

    Args:
      access: Holds the audit log.
      caller: Who calls.
      verb: `evaluate`, `evaluate_batch`, `check`, `environments.build`, …
      evaluator: The evaluator of the call, when the verb has one.
      rows: Number of rows in the request.
    """

    __slots__ = ("_access", "_caller", "_evaluator", "_rows", "_started", "_verb")

    def __init__(
        self, access: Access, caller: Caller, verb: str, *, evaluator: Evaluator | None = None, rows: int = 0
    ) -> None:
        self._access = access
        self._caller = caller
        self._verb = verb
        self._evaluator = evaluator
        self._rows = rows
        self._started = time.perf_counter()

    def __enter__(self) -> None:
        """Begin the block that does the call."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record how the block ended; a cancelled block is not recorded."""
        if error is None:
            self.answered(None)
        elif isinstance(error, Exception):
            self.failed(error)

    def answered(self, value: object) -> None:
        """Record a call that returned a value."""
        if isinstance(value, EvaluationResult):
            failed = value.error is not None
            self._see_package_set(value)
            self._note(value.evaluator.digest, failed=int(failed), outcome=_outcome(value))
        elif isinstance(value, Batch):
            self._note_batch(value)
        elif isinstance(value, CheckReport):
            self._note(self._digest(), failed=0, outcome=_OK if value.ok else "problems")
        else:
            self._note(None, failed=0, outcome=_OK)

    def failed(self, error: BaseException) -> None:
        """Record a call that raised."""
        outcome = error.code if isinstance(error, HostError) else HostError.code
        self._note(self._digest(), failed=self._rows, outcome=outcome)

    def abandoned(self) -> None:
        """Record a call whose caller hung up."""
        self._note(self._digest(), failed=self._rows, outcome=ABANDONED)

    def _note_batch(self, batch: Batch) -> None:
        if not batch.results:
            self._note(self._digest(), failed=0, outcome=_OK)
            return
        first = batch.results[0]
        self._see_package_set(first)
        worst = Counter(batch.summary.errors).most_common(1)
        outcome = worst[0][0] if worst else _outcome(first)
        self._note(first.evaluator.digest, failed=batch.summary.failed, outcome=outcome)

    def _see_package_set(self, result: EvaluationResult) -> None:
        if self._evaluator is not None and self._evaluator.packages:
            self._access.package_visibility.note(self._caller, result.environment.digest)

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
                rows=self._rows,
                failed=failed,
                outcome=outcome,
                duration_ms=round((time.perf_counter() - self._started) * 1000, 3),
            )
        )


def _outcome(result: EvaluationResult) -> str:
    return result.error.code.value if result.error is not None else result.status.value
