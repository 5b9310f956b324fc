"""What a migration says: the new code, what changed, what is left to do, and the proof."""

from dataclasses import dataclass
from enum import StrEnum

from evaluator_host.model.evaluator import Language, Row
from evaluator_host.model.outcome import EvaluationResult


class MigrationStatus(StrEnum):
    """What became of one evaluator."""

    MIGRATED = "migrated"
    CURRENT = "current"  # it has the signature that is asked for
    REFUSED = "refused"  # it cannot be rewritten safely, and is as it was
    NO_EVALUATOR = "no_evaluator"  # it defines no function of that name


class Verdict(StrEnum):
    """What running the old and the new code over the same rows has shown."""

    PROVEN = "proven"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a line of the old code; `line` counts from 1, None for the whole of it."""

    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row on which the old and the new code do not agree.

    Attributes:
      row: Its number, from 0.
      given: The row itself.
      message: In what they differ.
    """

    row: int
    given: Row
    message: str
    old: EvaluationResult
    new: EvaluationResult


@dataclass(frozen=True, slots=True)
class Proof:
    """Old and new code over the same rows.

    Attributes:
      rows: How many rows were compared and agreed or differed.
      scored: On how many of them the old code scored; on the others both failed.
      generated: The rows were made up from what the code reads.
      left_out: Rows that the legacy contract refuses before any code runs: they lack the ground truth.
      differing: How many rows differ; `differences` holds the first of them.
      why: Why nothing could be compared.
    """

    verdict: Verdict
    rows: int = 0
    scored: int = 0
    generated: bool = False
    left_out: int = 0
    differing: int = 0
    differences: tuple[RowDifference, ...] = ()
    why: str | None = None

    @property
    def text(self) -> str:
        """In one line."""
        made = " generated" if self.generated else ""
        match self.verdict:
            case Verdict.PROVEN:
                return f"proven on {self.rows}{made} rows"
            case Verdict.DIFFERS if not self.differences:
                return f"differs at {self.differing} of {self.rows}{made} rows"
            case Verdict.DIFFERS:
                return f"differs at row {self.differences[0].row}: {self.differences[0].message}"
            case Verdict.NOT_COMPARABLE:
                return f"not comparable: {self.why}"


@dataclass(frozen=True, slots=True)
class Migration:
    """The answer of `POST /v1/migrate`.

    Attributes:
      code: The new code; the old one when the status is not `migrated`.
      diff: Unified, from the old code to the new.
      changes: What was done, by line of the old code.
      unresolved: What a person has to look at, by line of the old code.
      proof: None when nothing was rewritten.
    """

    status: MigrationStatus
    language: Language
    code: str
    diff: str
    changes: tuple[Remark, ...]
    unresolved: tuple[Remark, ...]
    proof: Proof | None

    @property
    def is_proven(self) -> bool:
        """Whether there is new code, and it scores like the old one."""
        return self.proof is not None and self.proof.verdict is Verdict.PROVEN


@dataclass(frozen=True, slots=True)
class StoredMigration:
    """What became, or would become, of a named evaluator.

    Attributes:
      version: The legacy one.
      made: The version that was made of it; None when none was.
    """

    name: str
    version: int
    made: int | None
    migration: Migration
