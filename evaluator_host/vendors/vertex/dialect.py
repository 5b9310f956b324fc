"""Arguments and results of Vertex AI's custom metrics (dialect `vertex`): `evaluate(instance)` returns a score.

Source of the rules: google-cloud-aiplatform 2.7.0, `agentplatform/_genai/_evals_metric_handlers.py`.
"""

from typing import Final

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    is_number,
    scored,
    shown,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import EvaluationError, Returned

_SHAPE: Final = 'return a number, or {"score": …, "explanation": …}'


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the `instance` argument: the row's `variables`, or an object made from the row's other fields."""
    return bind_native(row, settings, _instance, needs="response", around="instance")


def _instance(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    made = {**inputs, "prompt": _text(inputs.get("prompt", inputs)), "response": _text(row.outputs)}
    return made if inputs is row.inputs else {**made, "reference": _text(truth)}


def _text(value: Json) -> dict[str, Json]:
    return {"text": value if isinstance(value, str) else encode_json(value).decode()}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read a number, or an object with `score` and `explanation`."""
    if (error := unreadable(returned)) is not None:
        return error
    value = returned.value
    score = value.get("score") if isinstance(value, dict) else value
    explanation = value.get("explanation") if isinstance(value, dict) else None
    if not isinstance(score, bool) and not is_number(score):
        return invalid(
            f"a custom metric returns a number or an object with a number `score`, not {shown(value)}", _SHAPE
        )
    reason = explanation if isinstance(explanation, str) else None
    native = {"score": float(score), "explanation": reason}
    return scored([NamedScore("score", score, reason)], [native])


def failed(error: EvaluationError) -> tuple[dict[str, Json], ...]:
    """Return the object with the error message that Vertex AI stores for a metric that fails."""
    return ({"score": None, "error_message": error.message},)


DIALECT: Final = Dialect(
    contract=Contract("vertex"),
    bind=bind,
    interpret=interpret,
    failed=failed,
    languages=frozenset((Language.PYTHON,)),
    native_row={
        "prompt": {"text": "What is the capital of France?"},
        "response": {"text": "Paris"},
        "reference": {"text": "Paris"},
    },
    takes=("correct_answer_key", "variables"),
    truth_or_column=("reference",),
)
