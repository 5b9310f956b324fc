"""What the verbs answer that is no result of a row: a batch in numbers, a check, the state of the host."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator_host.model import Limits
from evaluator_host.outcome import (
    EnvironmentInfo,
    EvaluationError,
    EvaluationResult,
    Failed,
    Logs,
    MissingImport,
    Note,
    Status,
)
from evaluator_host.pool import Lease
from evaluator_host.service.prepared import Prepared
from evaluator_host.service.scoring import environment_info


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a sandbox found in an evaluator without running a row; the answer of `POST /v1/check`.

    Attributes:
      logs: What the code printed at module level.
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


@dataclass(frozen=True, slots=True)
class HostInfo:
    """What this host is and has; the answer of `GET /v1/info`.

    Attributes:
      runtimes: What evaluators run on: `{"python": "3.13", "node": "24"}`.
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


def summarise(results: Sequence[EvaluationResult], *, seconds: float) -> BatchSummary:
    """Summarise results that took `seconds` of wall-clock time."""
    statuses = Counter(result.status for result in results)
    scores = [result.score for result in results if result.score is not None]
    verdicts = [result.passed for result in results if result.passed is not None]
    return BatchSummary(
        rows=len(results),
        scored=statuses[Status.SCORED],
        failed=statuses[Status.FAILED],
        skipped=statuses[Status.SKIPPED],
        mean=sum(scores) / len(scores) if scores else None,
        pass_rate=sum(verdicts) / len(verdicts) if verdicts else None,
        errors=dict(Counter(result.error.code.value for result in results if result.error)),
        rows_per_s=round(len(results) / seconds, 1) if seconds > 0 else 0.0,
    )


def check_report(prepared: Prepared, answer: Lease | Failed) -> CheckReport:
    """Read a load as a report: a failed one is a problem, a missing import is one too."""
    if isinstance(answer, Failed):
        return CheckReport(
            ok=False,
            contract=None,
            contract_source=None,
            reason=None,
            parameters=(),
            missing_imports=answer.imports,
            problems=(prepared.source.locate(answer.error),),
            notes=prepared.source.notes,
            environment=environment_info(prepared, None),
            logs=answer.logs,
        )
    loaded = answer.loaded
    return CheckReport(
        ok=not loaded.imports,
        contract=loaded.contract,
        contract_source=loaded.contract_source,
        reason=loaded.reason,
        parameters=loaded.parameters,
        missing_imports=loaded.imports,
        problems=(),
        notes=(*prepared.source.notes, *loaded.notes),
        environment=environment_info(prepared, answer.sandbox),
        logs=loaded.logs,
    )
