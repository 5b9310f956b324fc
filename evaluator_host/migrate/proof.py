"""Runs the old and the new code over the same rows, in sandboxes, and compares their results."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluator_host.types.errors import HostBusy
from evaluator_host.types.evaluator import Contract, Evaluator, Json, Row
from evaluator_host.types.outcome import HOST_FAULTS, ErrorCode, EvaluationResult, Status
from evaluator_host.types.proof import Proof, ProofVerdict, RowDifference

_SHOWN: Final = 5
# an extra column that contains the whole row, which early versions of Agenta passed as the fourth argument
_WHOLE_ROW: Final = "__row__"
# errors of rows that were refused before any code ran
_UNCALLED: Final = (ErrorCode.MISSING_INPUT, ErrorCode.BINDING_ERROR)
_BROKEN: Final = (ErrorCode.SYNTAX_ERROR, ErrorCode.LOAD_ERROR, ErrorCode.ENTRY_NOT_FOUND, ErrorCode.ENTRY_AMBIGUOUS)


@dataclass(frozen=True, slots=True)
class Pair:
    """The evaluator before and after the migration.

    Attributes:
      whole_row: Whether the old code expects the whole row as its fourth argument.
    """

    old: Evaluator
    new: Evaluator
    whole_row: bool = False


Run = Callable[[Evaluator, Sequence[Row]], Awaitable[list[EvaluationResult]]]
"""Scores rows in sandboxes and returns the results in order: `Service.evaluate_batch`, or a remote host."""


class Proving:
    """Proves migrations with a function that runs code in sandboxes."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def prove(self, pair: Pair, rows: Sequence[Row], *, generated: bool) -> Proof:
        """Run both evaluators on the same rows. Return whether they score the same, and the differences.

        `generated` says whether the host generated the rows; the proof repeats it.

        The new contract never passes the whole row. So if the old code expects the whole row as its fourth argument,
        equivalence cannot be proven. Here the old code gets the whole row, and the proof only says how often the two
        agree.
        """
        if not rows:
            return Proof(ProofVerdict.NOT_COMPARABLE, why="there are no rows")
        try:
            proof = await self._prove(pair, rows, generated=generated)
        except HostBusy as busy:
            return Proof(ProofVerdict.NOT_COMPARABLE, rows=len(rows), generated=generated, why=busy.detail)
        if not pair.whole_row or proof.why is not None:
            return proof
        alike = proof.rows - proof.differing
        key = pair.old.settings.correct_answer_key
        why = (
            f"the legacy contract passes inputs[{key!r}], but the code reads the whole row, which early versions of "
            f"Agenta passed; with the whole row, old and new code agree on {alike} of {proof.rows} rows"
        )
        return replace(proof, verdict=ProofVerdict.NOT_COMPARABLE, why=why)

    async def _prove(self, pair: Pair, rows: Sequence[Row], *, generated: bool) -> Proof:
        """Run both evaluators and compare their results.

        Raises:
          HostBusy: the host could not run a row; its result would look like a difference.
        """
        olds = await self._old(pair, rows)
        news = await self._run(pair.new, rows)
        _require_run((*olds, *news))
        compared = [
            (index, old, new)
            for index, (old, new) in enumerate(zip(olds, news, strict=True))
            if old.error is None or old.error.code not in _UNCALLED
        ]
        proof = Proof(
            ProofVerdict.PROVEN,
            rows=len(compared),
            scored=sum(old.status is Status.SCORED for _, old, _ in compared),
            generated=generated,
            left_out=len(rows) - len(compared),
        )
        why = _not_comparable(proof, olds, compared)
        found = [(index, old, new) for index, old, new in compared if differs(old, new) is not None]
        if why is None and found:
            why = await self._unsteady(pair, rows, found)
        if why is not None:
            return replace(proof, verdict=ProofVerdict.NOT_COMPARABLE, why=why)
        if not found:
            return proof
        shown = tuple(
            RowDifference(index, rows[index], differs(old, new) or "", old, new) for index, old, new in found[:_SHOWN]
        )
        return replace(proof, verdict=ProofVerdict.DIFFERS, differing=len(found), differences=shown)

    async def _old(self, pair: Pair, rows: Sequence[Row]) -> list[EvaluationResult]:
        if not pair.whole_row:
            return await self._run(pair.old, rows)
        settings = replace(pair.old.settings, correct_answer_key=_WHOLE_ROW)
        given = [replace(row, inputs={**row.inputs, _WHOLE_ROW: row.inputs}) for row in rows]
        return await self._run(replace(pair.old, settings=settings), given)

    async def _unsteady(
        self, pair: Pair, rows: Sequence[Row], found: Sequence[tuple[int, EvaluationResult, EvaluationResult]]
    ) -> str | None:
        """Return why a difference between the scores proves nothing, or None.

        It proves nothing if the old or the new code scores differently when it runs again.
        """
        given = [rows[index] for index, _, _ in found]
        olds = await self._old(pair, given)
        news = await self._run(pair.new, given)
        _require_run((*olds, *news))
        for (index, old, new), old_again, new_again in zip(found, olds, news, strict=True):
            for name, first, other in (("old", old, old_again), ("new", new, new_again)):
                if (message := differs(first, other)) is not None:
                    again = f"row {index} differs when it runs again ({message})"
                    return f"the {name} code depends on chance or time: {again}"
        return None


def scoring(results: Sequence[EvaluationResult]) -> Proof:
    """Return a proof for code that stays unchanged.

    The proof says whether the code scores the rows that have `results`.
    """
    scored = sum(one.status is Status.SCORED for one in results)
    if scored:
        return Proof(ProofVerdict.PROVEN, rows=len(results), scored=scored)
    error = results[0].error
    why = f"the code scores none of the {len(results)} rows: {error.message if error is not None else ''}"
    return Proof(ProofVerdict.NOT_COMPARABLE, rows=len(results), why=why)


def _require_run(results: Sequence[EvaluationResult]) -> None:
    for result in results:
        if result.error is not None and result.error.code in HOST_FAULTS:
            raise HostBusy(f"the host could not run a row, so nothing is proven: {result.error.message}; try again")


def _not_comparable(
    proof: Proof,
    olds: Sequence[EvaluationResult],
    compared: Sequence[tuple[int, EvaluationResult, EvaluationResult]],
) -> str | None:
    if not compared:
        error = olds[0].error
        return f"no row has the inputs that the legacy call needs: {error.message if error else ''}"
    if proof.scored:
        return None
    error = compared[0][1].error
    if error is None or any(new.status is Status.SCORED for _, _, new in compared):
        return None
    kind = "does not load" if error.code in _BROKEN else f"scores none of the {len(compared)} rows"
    return f"the old code {kind}: {error.message}"


def differs(old: EvaluationResult, new: EvaluationResult) -> str | None:
    """Describe the difference between two results of one row; None if they agree. Two failures agree."""
    if old.status is not new.status:
        return f"old {_said(old)}, new {_said(new)}"
    if old.status is Status.FAILED:
        return None
    if not _same(old.score, new.score):
        return f"old score {old.score}, new score {new.score}"
    if old.passed != new.passed:
        return f"old passed {old.passed}, new passed {new.passed}"
    if old.label != new.label:
        return f"old label {old.label!r:.200}, new label {new.label!r:.200}"
    if old.metrics.keys() != new.metrics.keys() or not all(
        _same(old.metrics[name], new.metrics[name]) for name in old.metrics
    ):
        return f"old metrics {old.metrics}, new metrics {new.metrics}"
    return None


def _said(result: EvaluationResult) -> str:
    if result.error is not None:
        return f"failed ({result.error.code}: {result.error.message[:200]})"
    return f"score {result.score}"


def _same(old: Json, new: Json) -> bool:
    if isinstance(old, float) and isinstance(new, float) and math.isnan(old) and math.isnan(new):
        return True
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def contract_after(old: Evaluator, to: Contract = Contract.EVALUATE) -> Contract:
    """Return the contract to declare for the new code. If the old contract was inferred, the new one is, too."""
    return Contract.AUTO if old.contract is Contract.AUTO else to
