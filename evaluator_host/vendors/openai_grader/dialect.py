"""Arguments and results of OpenAI's Python graders (dialect `openai-grader`): `grade(sample, item)` returns a number.

Source of the rules: the types of openai 3.54.0 (`graders/python_grader`), and OpenAI's page on Python graders.
"""

from typing import Final

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import FINITE, Scored
from evaluator_host.engine.contracts.metric_leaves import finite
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    scored,
    shown,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.json_values import InvalidJson, decode_json, encode_json
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Note, Returned

_COERCED: Final = Note("coerced", "a bool was counted as 1 or 0")


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return `{"sample", "item"}`: the row's `variables`, or an object made from the row's other fields."""
    return bind_native(row, settings, _pair, needs="sample")


def _pair(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    given = row.inputs
    if row.outputs is None and isinstance(given.get("item"), dict) and isinstance(given.get("sample"), dict):
        return given
    inputs, truth = without_truth(row, settings)
    item = row.inputs if inputs is row.inputs else {"reference": truth, **row.inputs}
    text = row.outputs if isinstance(row.outputs, str) else encode_json(row.outputs).decode()
    sample: dict[str, Json] = {"output_text": text, "output_tools": [], "choices": []}
    try:
        return {"sample": {**sample, "output_json": decode_json(text.encode())}, "item": item}
    except InvalidJson:
        return {"sample": sample, "item": item}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the reward: any number, in any range; a bool counts as 1 or 0."""
    if (error := unreadable(returned)) is not None:
        return error
    if returned.kind not in (Kind.NUMBER, Kind.BOOL):
        return invalid(f"a Python grader must return a number, not {shown(returned.value)}", "return float(…)")
    notes = (_COERCED,) if returned.kind is Kind.BOOL else ()
    reward = finite(float(returned.value) if returned.kind is Kind.BOOL else returned.value)
    if reward is None:
        return EvaluationError(ErrorCode.NON_FINITE, "the reward is too large for a float", hint=FINITE)
    return scored([NamedScore("reward", float(reward))], [{"reward": float(reward)}], notes=notes)


def failed(error: EvaluationError) -> tuple[dict[str, Json], ...]:
    """Return what OpenAI stores for a grader that fails: no reward, and the kind of its error."""
    return ({"reward": 0.0, "errors": {"python_grader_runtime_error": True}},)


DIALECT: Final = Dialect(
    contract=Contract("openai-grader"),
    bind=bind,
    interpret=interpret,
    failed=failed,
    positions=("sample", "item"),
    languages=frozenset((Language.PYTHON,)),
    native_row={
        "sample": {"output_text": "Paris"},
        "item": {"question": "What is the capital of France?", "reference": "Paris"},
    },
    takes=("correct_answer_key", "variables"),
    truth_or_column=("reference",),
)
