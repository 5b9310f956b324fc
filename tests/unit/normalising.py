"""Makes a runner's report about a returned value, and the host's result for that report, for tests of normalisation."""

from typing import Any

from evaluator_host.engine.service.row_io import RunInfo, normalise
from evaluator_host.types.evaluator import Contract, Evaluator, Language
from evaluator_host.types.outcome import (
    EnvironmentInfo,
    EvaluationError,
    EvaluationResult,
    EvaluatorInfo,
    Failed,
    Kind,
    Note,
    Returned,
    SandboxInfo,
    Status,
    Timing,
)

PY, JS = Language.PYTHON, Language.JAVASCRIPT
EVALUATE, V1, MAIN = Contract.EVALUATE, Contract.EVALUATE_V1, Contract.MAIN
ALL = (EVALUATE, V1, MAIN)
KINDS = {bool: Kind.BOOL, int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.STRING, dict: Kind.OBJECT, list: Kind.ARRAY}


def returned(value: Any, **changes: Any) -> Returned:
    """Return the report that an honest runner sends about a value."""
    return Returned(**({"kind": KINDS.get(type(value), Kind.NULL), "value": value} | changes))


def info(language: Language = PY, contract: Contract = EVALUATE) -> RunInfo:
    return RunInfo(
        timing_ms=Timing(run=1.5),
        evaluator=EvaluatorInfo(None, None, "sha256:0", language, contract, "declared"),
        environment=EnvironmentInfo("sha256:1", "python 3.13", ()),
        sandbox=SandboxInfo("bubblewrap", warm=True),
    )


def result(
    outcome: Any,
    contract: Contract = EVALUATE,
    language: Language = PY,
    *,
    threshold: float | None = None,
    notes: tuple[Note, ...] = (),
) -> EvaluationResult:
    if not isinstance(outcome, Returned | Failed):
        outcome = returned(outcome)
    evaluator = Evaluator("", language=language, threshold=threshold)
    return normalise(outcome, evaluator, info=info(language, contract), notes=notes)


def codes(found: EvaluationResult) -> list[str]:
    return [note.code for note in found.warnings]


def refusal(outcome: Any, contract: Contract = EVALUATE, language: Language = PY) -> EvaluationError:
    found = result(outcome, contract, language)
    assert found.status is Status.FAILED
    assert (found.score, found.passed, found.metrics) == (None, None, {})
    assert found.error is not None
    return found.error
