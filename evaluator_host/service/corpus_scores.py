"""Scores that rows have together: one more call, for all of them at once, under the limits of one row."""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable

from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.errors import SandboxLost
from evaluator_host.model.evaluator import Row
from evaluator_host.model.outcome import EvaluationError, EvaluationResult, Failed, Outcome
from evaluator_host.pool import Lease, Pool
from evaluator_host.service.prepared import Prepared
from evaluator_host.service.row_io import Bound, bind_together, result
from evaluator_host.service.rows import lost


async def score_together(
    pool: Pool, prepared: Prepared, rows: AsyncIterable[Row], *, started: float
) -> EvaluationResult | None:
    """Score rows together; None where the evaluator has no such scores, or there is no row.

    Rows are drawn only when they are wanted. A sandbox that is lost for our own reasons is retried once.
    """
    bound: Bound | None = None
    try:
        for last in (False, True):
            lease = await pool.lease_sandbox(prepared.request)
            if isinstance(lease, Failed):
                return result(prepared, None, lease, started=started, backend=pool.backend.name)
            try:
                bind_one = dialect_of(lease.loaded.contract).bind_one_of_many if lease.loaded.together else None
                bound = bound or (await bind_together(bind_one, rows) if bind_one is not None else None)
                return await _called(prepared, lease, bound, started=started)
            except SandboxLost:
                if last:
                    raise
            finally:
                pool.release(lease)
    except SandboxLost as error:
        return result(prepared, None, lost(error), started=started, backend=pool.backend.name)
    raise AssertionError("unreachable")  # pragma: no cover


async def each(rows: Iterable[Row]) -> AsyncGenerator[Row, None]:
    """Yield rows that are there already."""
    for row in rows:
        yield row


async def _called(prepared: Prepared, lease: Lease, bound: Bound | None, *, started: float) -> EvaluationResult | None:
    if bound is None:
        return None
    outcome: Outcome
    if isinstance(bound.body, EvaluationError):
        outcome = Failed(bound.body)
    else:
        outcome = await lease.sandbox.call(bound.body, timeout_s=prepared.evaluator.limits.timeout_s)
    return result(prepared, lease, outcome, notes=bound.notes, started=started)
