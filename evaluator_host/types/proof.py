"""The proof that new code scores the same rows as the code before it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from .doc import Doc
from .evaluator import Row
from .names import counted
from .outcome import EvaluationResult


class ProofVerdict(StrEnum):
    """Whether the old and the new code gave the same scores for the same rows."""

    PROVEN = "proven"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row for which the old and the new code have different results."""

    row: Annotated[int, Doc("Number of the row, from 0.")]
    given: Annotated[Row, Doc("The row.")]
    message: Annotated[str, Doc("How the two results differ.")]
    old: Annotated[EvaluationResult, Doc("Result of the old code.")]
    new: Annotated[EvaluationResult, Doc("Result of the new code.")]


@dataclass(frozen=True, slots=True)
class Proof:
    """The comparison of old and new code over the same rows."""

    verdict: Annotated[ProofVerdict, Doc("Whether all results agree.")]
    rows: Annotated[int, Doc("Number of rows that were compared.")] = 0
    scored: Annotated[
        int, Doc("Number of compared rows that the old code scored; the old code failed on the others.")
    ] = 0
    generated: Annotated[bool, Doc("Whether the rows were generated from the fields that the code reads.")] = False
    left_out: Annotated[
        int, Doc("Number of rows without ground truth, which the legacy contract refuses before any code runs.")
    ] = 0
    differing: Annotated[int, Doc("Number of rows with different results.")] = 0
    differences: Annotated[tuple[RowDifference, ...], Doc("The first rows with different results.")] = ()
    why: Annotated[str | None, Doc("Why nothing could be compared; None unless the verdict is `not_comparable`.")] = (
        None
    )

    @property
    def text(self) -> str:
        """Return the result of the proof in one line."""
        rows = counted(self.rows, "generated row" if self.generated else "row")
        match self.verdict:
            case ProofVerdict.PROVEN:
                scored = "" if self.scored == self.rows else f", of which the old code scored {self.scored}"
                left_out = f"; {counted(self.left_out, 'row')} left out" if self.left_out else ""
                return f"proven on {rows}{scored}{left_out}"
            case ProofVerdict.DIFFERS if not self.differences:
                return f"differs at {self.differing} of {rows}"
            case ProofVerdict.DIFFERS:
                return f"differs at row {self.differences[0].row}: {self.differences[0].message}"
            case ProofVerdict.NOT_COMPARABLE:
                return f"not comparable: {self.why}"
