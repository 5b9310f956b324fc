"""What the verbs of evaluation answer that is no result of a row: a batch in numbers, a check, how the host is."""

from dataclasses import dataclass, field

from evaluator_host.model.evaluator import Limits
from evaluator_host.model.outcome import (
    EnvironmentInfo,
    EvaluationError,
    EvaluationResult,
    EvaluatorClass,
    Logs,
    MissingImport,
    Note,
)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a sandbox found in an evaluator without running a row; the answer of `POST /v1/check`.

    Attributes:
      logs: What the code printed at module level.
      classes: Evaluator classes that can be listed, in the order of definition, faulty ones too.
    """

    ok: bool
    contract: str | None
    contract_source: str | None
    reason: str | None
    parameters: tuple[str, ...]
    missing_imports: tuple[MissingImport, ...]
    problems: tuple[EvaluationError, ...]
    notes: tuple[Note, ...]
    environment: EnvironmentInfo
    logs: Logs = field(default_factory=Logs)
    classes: tuple[EvaluatorClass, ...] = ()


@dataclass(frozen=True, slots=True)
class HostInfo:
    """What this host is and has; the answer of `GET /v1/info`.

    Attributes:
      runtimes: What evaluators run on: `{"python": "3.13", "node": "24"}`.
      pythons: Minor versions of Python that they may ask for instead.
    """

    version: str
    backend: str
    languages: tuple[str, ...]
    contracts: tuple[str, ...]
    sandboxes: int
    max_sandboxes: int
    waiting: int
    default_limits: Limits
    limit_ceilings: Limits
    runtimes: dict[str, str] = field(default_factory=dict)
    pythons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """A batch in numbers; `mean` over scored rows, `pass_rate` over rows that passed or did not."""

    rows: int
    scored: int
    failed: int
    skipped: int
    mean: float | None
    pass_rate: float | None
    errors: dict[str, int]
    rows_per_s: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Results in the order of the rows, and their summary.

    Attributes:
      together: What the rows that scored came to together, where the evaluator says that.
    """

    results: tuple[EvaluationResult, ...]
    summary: BatchSummary
    together: EvaluationResult | None = None
