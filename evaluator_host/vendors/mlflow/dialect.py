"""Arguments and results of MLflow's scorers (dialect `mlflow`), which return values or `Feedback`.

The runner sends `{"feedbacks": [{"name", "value", "rationale", "error", "metadata"}]}`, or `{"returned": type, "name"}`
for any other value. Source of the rules: mlflow 3.17.2, genai/scorers/base.py, genai/evaluation/utils.py.
"""

from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    object_sent,
    scored,
    scoring_failed,
    together,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Note, Returned
from evaluator_host.types.warnings import remedy_of

_YES: Final = {"yes": True, "no": False}


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return MLflow's row: the row's `variables`, or an object made from the row's other fields."""
    return bind_native(row, settings, _fields, needs="outputs")


def _fields(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    expectations: dict[str, Json] = {} if inputs is row.inputs else {"expected_response": truth}
    if isinstance(own := row.inputs.get("expectations"), dict):
        expectations = own
    fields = {"inputs": inputs, "outputs": row.outputs, "expectations": expectations, "trace": row.trace}
    return {**fields, "session": messages_of(row)}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the feedback: numbers and bools are averaged, "yes" and "no" are verdicts, and None skips the row.

    If some feedback is text, the row passes if every feedback that counts passes, and fails if one of them is false or
    "no". Text that is neither "yes" nor "no" does not count.
    """
    value = object_sent(returned)
    if isinstance(value, EvaluationError):
        return value
    found = value.get("feedbacks")
    if not isinstance(found, list):
        return invalid(
            f"{value.get('name')} must return one of int, float, bool, str, Feedback, or list[Feedback]. "
            f"Got {str(value.get('returned'))[:100]}",
            "return Feedback(value=…, rationale=…)",
        )
    native = [one for one in found if isinstance(one, dict)]
    if not native:
        return Scored(
            None, None, {}, skipped=True, notes=(Note("no_score", "the scorer returned None", remedy_of("no_score")),)
        )
    named, chosen = [_named(one) for one in native], settings.score_output
    if all(one.value is None for one in named):
        unusable = "no feedback has a number, bool or string as its value"
        why = next((str(one["error"]) for one in native if one.get("error")), unusable)
        return Scored(None, None, {}, native=tuple(native), error=invalid(why[:200]))
    notes = scoring_failed(sent for sent, one in zip(native, named, strict=True) if one.value is None)
    read = scored(named, native, notes=notes, chosen=chosen)
    counts = [one for one in named if chosen in (None, one.name) and one.value is not None]
    if not isinstance(read, Scored) or not any(isinstance(one.value, str) for one in counts):
        return read
    verdicts = [one.passed for one in counts if one.passed is not None or not isinstance(one.value, str)]
    passed = together(verdicts) if verdicts else None
    return replace(read, passed=False if False in verdicts else passed)


def _named(one: dict[str, Json]) -> NamedScore:
    reason, value = one.get("rationale"), one.get("value")
    plain = value if isinstance(value, bool | int | float | str) else None
    passed = _YES.get(plain.lower()) if isinstance(plain, str) else plain if isinstance(plain, bool) else None
    return NamedScore(str(one.get("name")), plain, reason if isinstance(reason, str) else None, passed)


DIALECT: Final = Dialect(
    contract=Contract("mlflow"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    native_row={
        "inputs": {"question": "What is the capital of France?"},
        "outputs": "Paris",
        "expectations": {"expected_response": "Paris"},
    },
    takes=("correct_answer_key", "config", "messages", "score_output", "variables"),
    truth=("expected_response",),
    sdk=Sdk(
        module="mlflow",
        stand_in=StandIn("dialects/mlflow/modules", preimport="mlflow.genai.scorers"),
        real=frozenset({"mlflow", "mlflow-skinny"}),
        decorators=("mlflow.genai.scorer",),
    ),
)
