"""One call on its way into the audit log: who asked for what, how it ended, how long it took."""

import time
from collections import Counter
from datetime import UTC, datetime

from evaluator_host.model.errors import HostError
from evaluator_host.model.evaluator import Evaluator
from evaluator_host.model.outcome import EvaluationResult
from evaluator_host.schemas.evaluation import Batch, CheckReport
from evaluator_host.service.prepared import evaluator_digest
from evaluator_host.store.audit import AuditEntry
from evaluator_host.web.auth.access import Access
from evaluator_host.web.auth.keyring import Caller

ABANDONED = "abandoned"  # the caller hung up
_OK = "ok"


class Audited:
    """A call that has begun. Exactly one of its methods is called, once.

    Args:
      access: Holds the log.
      caller: Whose call it is.
      verb: What they asked for: `evaluate`, `evaluate_batch`, `check`, `environments.build`, …
      evaluator: Theirs, when the verb has one.
      rows: How many they sent.
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

    def answered(self, value: object) -> None:
        """Note an answer."""
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
        """Note that there is no answer, and why."""
        outcome = error.code if isinstance(error, HostError) else HostError.code
        self._note(self._digest(), failed=self._rows, outcome=outcome)

    def abandoned(self) -> None:
        """Note that nobody waits for the answer any more."""
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
            self._access.visible_sets.note(self._caller, result.environment.digest)

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
