"""Scores that rows have together: one more call, for all of them at once, under the limits of one row."""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable

from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.evaluator import Row
from evaluator_host.model.outcome import EvaluationResult, Loaded
from evaluator_host.pool import Pool
from evaluator_host.service.attempts import attempt
from evaluator_host.service.prepared import Prepared
from evaluator_host.service.row_io import Bound, bind_together


class _NothingToScore(Exception):
    """The evaluator has no scores for rows together, or there is no row."""


async def score_together(
    pool: Pool, prepared: Prepared, rows: AsyncIterable[Row], *, started: float
) -> EvaluationResult | None:
    """Score rows together; None when the evaluator has no such scores, or there is no row.

    Rows are drawn only for an evaluator that has such scores, and once: a retry sends the same body.
    """
    bound: Bound | None = None

    async def bind_once(loaded: Loaded) -> Bound:
        nonlocal bound
        bind_one = dialect_of(loaded.contract).bind_one_of_many
        if bound is None and loaded.together and bind_one is not None:
            bound = await bind_together(bind_one, rows)
        if bound is None:
            raise _NothingToScore
        return bound

    try:
        made = await attempt(pool, prepared, bind_once)
    except _NothingToScore:
        return None
    return made.result(started=started)


async def each(rows: Iterable[Row]) -> AsyncGenerator[Row, None]:
    """Yield rows that are there already."""
    for row in rows:
        yield row
