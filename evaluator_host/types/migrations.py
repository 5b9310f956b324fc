"""Results of migrations (new code, changes, open points) and of imports (imported and omitted parts)."""

from dataclasses import dataclass
from enum import StrEnum

from .evaluator import Contract, Json, Language
from .proof import Proof, ProofVerdict


class MigrationStatus(StrEnum):
    """The outcome of migrating one evaluator."""

    MIGRATED = "migrated"
    ADAPTED = "adapted"  # the old code stays under another name, and a new function calls it
    CURRENT = "current"  # the code already has the new signature
    AS_PASTED = "as_pasted"  # the code fits another contract, and runs unchanged under that contract
    REFUSED = "refused"  # the code cannot be rewritten safely, and stays as it was
    NO_EVALUATOR = "no_evaluator"  # the code defines no function with that name


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about one place in the old code.

    Attributes:
      line: Line of the old code, from 1; None for the whole code.
      message: Text of the remark.
    """

    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Migration:
    """The result of migrating one evaluator, as `POST /v1/migrate` returns it.

    Attributes:
      status: Whether the code was rewritten.
      language: Language of the code.
      code: The new code; the old code when the status is neither `migrated` nor `adapted`.
      diff: Unified diff from the old code to the new.
      changes: Rewritten lines of the old code.
      unresolved: Lines of the old code that a person has to look at.
      proof: Comparison of old and new scores. For code that runs as pasted: how many of the caller's rows it scores.
        None if nothing was rewritten or run.
      contract: Contract under which the code runs as pasted; None for any other status.
    """

    status: MigrationStatus
    language: Language
    code: str
    diff: str
    changes: tuple[Remark, ...]
    unresolved: tuple[Remark, ...]
    proof: Proof | None
    contract: Contract | None = None

    @property
    def has_new_code(self) -> bool:
        """Return whether the code was rewritten or adapted."""
        return self.status in (MigrationStatus.MIGRATED, MigrationStatus.ADAPTED)

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to do: the code has the new signature, or runs unchanged for all rows."""
        proven = self.proof is None or self.is_proven
        return self.status is MigrationStatus.CURRENT or (self.status is MigrationStatus.AS_PASTED and proven)

    @property
    def is_proven(self) -> bool:
        """Return whether there is new code that gives the same scores as the old code."""
        return self.proof is not None and self.proof.verdict is ProofVerdict.PROVEN


@dataclass(frozen=True, slots=True)
class StoredMigration:
    """The migration of a stored evaluator, carried out or only tried.

    Attributes:
      name: Name of the evaluator.
      version: Number of the legacy version.
      made: Number of the new version; None if no version was stored.
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
      name: The name under which it is stored.
      version: Version that was stored; None in a dry run.
      where: Position of the evaluator in the imported file.
      contract: The contract that applies; None for an evaluator that does not load.
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
      name: The name under which it is stored.
      rows: Number of rows.
      where: The rows' name in the imported file: `tests`, `dataset items`.
      columns: Names of the inputs.
    """

    name: str
    rows: int
    where: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportRemark:
    """A part of an imported file that was left out: its position, the reason, and the part itself."""

    where: str
    reason: str
    value: Json


@dataclass(frozen=True, slots=True)
class Import:
    """The evaluators and data sets that an import made from a file.

    Attributes:
      platform: Name of the platform that the file comes from; `module` for a program.
      dry_run: Whether nothing was stored.
    """

    platform: str
    dry_run: bool
    evaluators: tuple[ImportedEvaluator, ...]
    datasets: tuple[ImportedDataset, ...]
    left_out: tuple[ImportRemark, ...]
