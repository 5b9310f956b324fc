"""Turns the outcome of a row into its result; the only place that decides a status."""

from dataclasses import dataclass

from evaluator_host.dialects.table import dialect_of
from evaluator_host.model.evaluator import Contract, Evaluator, Json
from evaluator_host.model.json_values import VALUE_DEPTH, nests_within
from evaluator_host.model.outcome import (
    EnvironmentInfo,
    EvaluationError,
    EvaluationResult,
    EvaluatorInfo,
    Failed,
    Kind,
    Logs,
    Note,
    Outcome,
    Returned,
    SandboxInfo,
    Skipped,
    Status,
    Timing,
)
from evaluator_host.service.source import CleanSource


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The part of a result that describes the run; `evaluator.contract` decides how the value is read."""

    timing_ms: Timing
    evaluator: EvaluatorInfo
    environment: EnvironmentInfo
    sandbox: SandboxInfo


def normalise(
    outcome: Outcome | Skipped,
    evaluator: Evaluator,
    *,
    info: RunInfo,
    notes: tuple[Note, ...] = (),
    source: CleanSource | None = None,
) -> EvaluationResult:
    """Return the result of one row.

    Nothing is clamped: a score outside 0..1 stays, with a warning. `passed` is what the evaluator said (a bool, or an
    explicit key), else `score >= threshold`; a threshold of 0 counts.

    Args:
      outcome: The sandbox's answer, a `Failed` around a binding error, or why the row was skipped.
      evaluator: For its threshold and language.
      info: Copied to the result; its contract decides how the value is read.
      notes: Of the host (source, load, trace); they come before those of the sandbox.
      source: Maps positions of errors to the pasted text.
    """
    if isinstance(outcome, Failed):
        error = outcome.error if source is None else source.locate(outcome.error)
        return _failed(outcome, error, None, info=info, notes=notes)
    if isinstance(outcome, Skipped):
        return _without_value(Status.SKIPPED, Logs(), info=info, notes=(outcome.note,))
    contract = info.evaluator.contract
    rules = dialect_of(Contract.EVALUATE if contract is None or contract is Contract.AUTO else contract)
    scored = rules.interpret(outcome, evaluator.language, settings=evaluator.settings)
    if isinstance(scored, EvaluationError):
        return _failed(outcome, scored, _value(outcome), info=info, notes=(*notes, *outcome.notes))
    score, passed = scored.score, scored.passed
    warnings = (*notes, *outcome.notes, *scored.notes) if notes or outcome.notes or scored.notes else ()
    if score is not None:
        if passed is None and evaluator.threshold is not None:
            passed = score >= evaluator.threshold
        if not 0 <= score <= 1:
            warnings = (*warnings, Note("out_of_range", f"score {score} lies outside 0..1"))
    return EvaluationResult(
        status=Status.SCORED,
        score=score,
        passed=passed,
        label=scored.label,
        reason=scored.reason,
        metrics=scored.metrics,
        value=outcome.value,
        warnings=warnings,
        error=None,
        logs=outcome.logs,
        timing_ms=info.timing_ms,
        evaluator=info.evaluator,
        environment=info.environment,
        sandbox=info.sandbox,
    )


def _value(returned: Returned) -> Json:
    """Return a refused value to be shown in the result; None when it has no JSON form or is nested too deeply."""
    if returned.kind in (Kind.MISSING, Kind.UNSUPPORTED) or not nests_within(returned.value, VALUE_DEPTH):
        return None
    return returned.value


def _failed(
    outcome: Outcome, error: EvaluationError, value: Json, *, info: RunInfo, notes: tuple[Note, ...]
) -> EvaluationResult:
    return _without_value(Status.FAILED, outcome.logs, info=info, notes=notes, error=error, value=value)


def _without_value(
    status: Status,
    logs: Logs,
    *,
    info: RunInfo,
    notes: tuple[Note, ...],
    error: EvaluationError | None = None,
    value: Json = None,
) -> EvaluationResult:
    return EvaluationResult(
        status=status,
        score=None,
        passed=None,
        label=None,
        reason=None,
        metrics={},
        value=value,
        warnings=notes,
        error=error,
        logs=logs,
        timing_ms=info.timing_ms,
        evaluator=info.evaluator,
        environment=info.environment,
        sandbox=info.sandbox,
    )
