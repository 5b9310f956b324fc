"""The proof of a migration compares results only for rows that the host could run."""

from collections.abc import Sequence

import pytest

from evaluator_host.migrate.proof import Pair, Proving
from evaluator_host.types.errors import HostBusy
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult, Status
from evaluator_host.types.proof import ProofVerdict
from tests.unit.results import result_of

PAIR = Pair(Evaluator("old"), Evaluator("new"))


@pytest.mark.parametrize("code", [ErrorCode.HOST_BUSY, ErrorCode.SANDBOX_LOST])
@pytest.mark.parametrize("side", ["old", "new"])
async def test_a_row_that_the_host_could_not_run_proves_nothing(side: str, code: ErrorCode) -> None:
    async def run(evaluator: Evaluator, rows: Sequence[Row]) -> list[EvaluationResult]:
        lost = result_of(status=Status.FAILED, score=None, error=EvaluationError(code, "no processor time"))
        return [lost if evaluator.code == side and at else result_of() for at, _ in enumerate(rows)]

    proof = await Proving(run).prove(PAIR, [Row(), Row()], generated=False)
    assert (proof.verdict, "no processor time" in (proof.why or "")) == (ProofVerdict.NOT_COMPARABLE, True)


async def test_a_host_that_is_busy_proves_nothing() -> None:
    async def run(_evaluator: Evaluator, _rows: Sequence[Row]) -> list[EvaluationResult]:
        raise HostBusy("no processor time")

    proof = await Proving(run).prove(PAIR, [Row()], generated=False)
    assert (proof.verdict, proof.why) == (ProofVerdict.NOT_COMPARABLE, "no processor time")


@pytest.mark.parametrize("side", ["old", "new"])
async def test_a_row_that_timed_out_once_is_not_a_difference(side: str) -> None:
    runs: list[str] = []

    async def run(evaluator: Evaluator, rows: Sequence[Row]) -> list[EvaluationResult]:
        runs.append(evaluator.code)
        late = result_of(status=Status.FAILED, score=None, error=EvaluationError(ErrorCode.TIMEOUT, "10 s"))
        return [late if evaluator.code == side and runs.count(side) == 1 else result_of() for _ in rows]

    proof = await Proving(run).prove(PAIR, [Row()], generated=False)
    assert (proof.verdict, f"the {side} code depends on chance or time" in (proof.why or "")) == (
        ProofVerdict.NOT_COMPARABLE,
        True,
    )


async def test_another_label_is_a_difference() -> None:
    async def run(evaluator: Evaluator, rows: Sequence[Row]) -> list[EvaluationResult]:
        return [result_of(score=None, label="good" if evaluator.code == "old" else "bad") for _ in rows]

    proof = await Proving(run).prove(PAIR, [Row()], generated=False)
    assert (proof.verdict, proof.differing) == (ProofVerdict.DIFFERS, 1)
    assert proof.differences[0].message == "old label 'good', new label 'bad'"
