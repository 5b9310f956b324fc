"""Scores all rows together in one call, for evaluators such as BLEU that score a whole corpus."""

from collections.abc import AsyncIterable

from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.pool import Pool
from evaluator_host.engine.service.calls import Callee, call_once, finish
from evaluator_host.engine.service.prepared import Prepared
from evaluator_host.engine.service.row_io import Bound, bind_together
from evaluator_host.types.evaluator import EncodedRow, Row
from evaluator_host.types.outcome import EvaluationError, EvaluationResult, Loaded


class _NothingToScore(Exception):
    """The evaluator does not score rows together, or there are no rows."""


async def score_together(
    pool: Pool, prepared: Prepared, rows: AsyncIterable[Row | EncodedRow], *, started: float
) -> EvaluationResult | None:
    """Score all rows together in one call; None if the evaluator does not do so, or there are no rows.

    `rows` is read only if the evaluator scores rows together, and only once, because a retry sends the same body.
    """
    bound: Bound | None = None

    async def bind_once(loaded: Loaded, row: Row | EncodedRow | EvaluationError) -> Bound:
        nonlocal bound
        if isinstance(row, EvaluationError):
            return Bound(row)
        bind_one = dialect_of(loaded.contract).bind_one_of_many
        if bound is None and loaded.together and bind_one is not None:
            bound = await bind_together(bind_one, rows, prepared.evaluator.settings)
        if bound is None:
            raise _NothingToScore
        return bound

    try:
        return await finish(await call_once(Callee(pool, prepared, bind_once), EncodedRow({}), since=started))
    except _NothingToScore:
        return None
