"""Responses of migrations and imports: new code, changes, open points, the proof; what was imported, what was not."""

from dataclasses import dataclass
from enum import StrEnum

from evaluator_host.model.evaluator import Contract, Json, Language, Row
from evaluator_host.model.outcome import EvaluationResult


class MigrationStatus(StrEnum):
    """The outcome of migrating one evaluator."""

    MIGRATED = "migrated"
    ADAPTED = "adapted"  # the old code stays under another name, and a new function calls it
    CURRENT = "current"  # it has the new signature already
    REFUSED = "refused"  # it cannot be rewritten safely, and stays as it was
    NO_EVALUATOR = "no_evaluator"  # it defines no function of that name


class Verdict(StrEnum):
    """Whether the old and the new code scored the same rows alike."""

    PROVEN = "proven"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about one place in the old code.

    Attributes:
      line: Line of the old code, from 1; None for the whole code.
      message: Message for people.
    """

    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row for which the old and the new code have different results.

    Attributes:
      row: Its number, from 0.
      given: The row.
      message: How the results differ.
      old: Result of the old code.
      new: Result of the new code.
    """

    row: int
    given: Row
    message: str
    old: EvaluationResult
    new: EvaluationResult


@dataclass(frozen=True, slots=True)
class Proof:
    """The comparison of old and new code over the same rows.

    Attributes:
      verdict: Whether all results agree.
      rows: Rows that were compared.
      scored: Compared rows that the old code scored; the old code failed on the others.
      generated: Whether the rows were generated from the fields that the code reads.
      left_out: Rows without ground truth, which the legacy contract refuses before any code runs.
      differing: Rows with different results.
      differences: The first of these rows.
      why: Why nothing could be compared; None unless the verdict is `not_comparable`.
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
        """The result of the proof in one line."""
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
      status: Whether the code was rewritten.
      language: Language of the code.
      code: The new code; the old code when the status is neither `migrated` nor `adapted`.
      diff: Unified diff from the old code to the new.
      changes: Rewritten lines of the old code.
      unresolved: Lines of the old code that a person has to look at.
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
    def has_new_code(self) -> bool:
        """Whether the code was rewritten or adapted."""
        return self.status in (MigrationStatus.MIGRATED, MigrationStatus.ADAPTED)

    @property
    def is_proven(self) -> bool:
        """Whether there is new code that scores like the old code."""
        return self.proof is not None and self.proof.verdict is Verdict.PROVEN


@dataclass(frozen=True, slots=True)
class StoredMigration:
    """The migration of a stored evaluator, done or only tried.

    Attributes:
      name: Name of the evaluator.
      version: The legacy version.
      made: The new version; None when none was stored.
      migration: Code, changes and proof.
    """

    name: str
    version: int
    made: int | None
    migration: Migration


@dataclass(frozen=True, slots=True)
class ImportedEvaluator:
    """An evaluator that an import made.

    Attributes:
      name: The name that it is stored under.
      version: None in a dry run.
      where: Its place in the imported file.
      contract: The contract that applies; None for one that does not load.
      evaluator: Code, settings and pins, in the form of `POST /v1/evaluate`.
    """

    name: str
    version: int | None
    where: str
    contract: Contract | None
    evaluator: dict[str, Json]


@dataclass(frozen=True, slots=True)
class ImportedDataset:
    """A data set that an import made.

    Attributes:
      name: The name that it is stored under.
      rows: Number of rows.
      where: What the rows are in the imported file: `tests`, `dataset items`.
      columns: Names of the inputs.
    """

    name: str
    rows: int
    where: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportRemark:
    """A part of an imported file that was left out: its place, the reason, and the part itself."""

    where: str
    reason: str
    value: Json


@dataclass(frozen=True, slots=True)
class Import:
    """Evaluators and data sets that an import made of a file.

    Attributes:
      platform: Where the file is from; `module` for a program.
      dry_run: Whether nothing was stored.
    """

    platform: str
    dry_run: bool
    evaluators: tuple[ImportedEvaluator, ...]
    datasets: tuple[ImportedDataset, ...]
    left_out: tuple[ImportRemark, ...]
