"""Arguments and results of Coze Loop's evaluators (dialect `coze`): `exec_evaluation(turn)` returns score and reason.

Source of the rules: coze-dev/coze-loop@4f550f38, its templates for code evaluators, and the code that reads their
results.
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
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import EvaluationError, Returned

_SHAPE: Final = "return EvalOutput(score=…, reason=…)"


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the `turn` argument: the row's `variables`, or an object made from the row's other fields."""
    return bind_native(row, settings, _turn, needs="evaluate_target_output_fields")


def _turn(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    columns = inputs if inputs is row.inputs else {**inputs, "reference_output": truth}
    return {
        "evaluate_dataset_fields": {name: _field(value) for name, value in columns.items()},
        "evaluate_target_output_fields": {"actual_output": _field(row.outputs)},
        "ext": {},
    }


def _field(value: Json) -> dict[str, Json]:
    return {"content_type": "Text", "text": value if isinstance(value, str) else encode_json(value).decode()}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read `reason` and `score`, a number or a string with a number.

    Any other score becomes None, which is not an error.
    """
    if (error := unreadable(returned)) is not None:
        return error
    value = returned.value
    if not isinstance(value, dict) or "not_an_output" in value:
        return invalid("Coze Loop takes an object with the attributes `score` and `reason`", _SHAPE)
    score, reason = _score(value.get("score")), value.get("reason")
    reason = reason if isinstance(reason, str) else None
    return scored([NamedScore("score", score, reason)], [{"score": score, "reason": reason}])


def _score(value: Json) -> float | int | None:
    if is_number(value):
        return value
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return number if is_number(number) else None


def failed(error: EvaluationError) -> tuple[dict[str, Json], ...]:
    """Return what Coze Loop stores for a row that failed with an exception: a score without a value."""
    return ({"score": None, "reason": None},)


DIALECT: Final = Dialect(
    contract=Contract("coze"),
    bind=bind,
    interpret=interpret,
    failed=failed,
    native_row={
        "evaluate_dataset_fields": {"reference_output": {"content_type": "Text", "text": "Paris"}},
        "evaluate_target_output_fields": {"actual_output": {"content_type": "Text", "text": "Paris"}},
        "ext": {},
    },
    takes=("correct_answer_key", "variables"),
    truth_or_column=("reference_output",),
)
