"""Dialect `evaluate-v1`, legacy: `evaluate(app_params, inputs, output, correct_answer)`, by position."""

from typing import Final

from evaluator_host.engine.contracts import interpret as reading
from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.json_values import decode_json
from evaluator_host.types.names import nearest_name
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Returned

_PARAMS: Final = "app_params"
_TEXT_CHARS: Final = 100_000
_SHOWN_KEYS: Final = 12
_SHOWN_CHARS: Final = 40
_COMPARED_KEYS: Final = 200
_USUAL_KEYS: Final = (
    "correct_answer",
    "expected",
    "expected_output",
    "ground_truth",
    "target",
    "reference",
    "answer",
    "gold",
)


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the four arguments. For a row without a correct answer, return an error; the code is not called."""
    key = settings.correct_answer_key
    if key not in row.inputs:
        return _missing(key[:_SHOWN_CHARS], list(row.inputs))
    return Binding({"args": [_params(row, settings), row.inputs, row.outputs, row.inputs[key]]})


def _params(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    """Return the evaluator's configuration, merged with `app_params` from the inputs and the variables of the row.

    If the same key is in several places, the variables override the inputs, and the inputs override the configuration.
    """
    given = (settings.config, row.inputs.get(_PARAMS), (row.variables or {}).get(_PARAMS))
    return {key: value for one in given for key, value in (_object(one) or {}).items()}


def _object(given: Json) -> dict[str, Json] | None:
    """Return the value if it is an object, or the object that a JSON string contains (as in a CSV file); else None."""
    if isinstance(given, str) and given.lstrip()[:1] == "{" and len(given) <= _TEXT_CHARS:
        try:
            given = decode_json(given.encode())
        except ValueError:
            return None
    return given if isinstance(given, dict) else None


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Convert the returned value to a score; a string that contains a number counts as that number."""
    if returned.kind is Kind.STRING and isinstance(returned.value, str):
        return reading.text_as_number(returned.value, "$", language) or reading.invalid_text(returned.value, language)
    return reading.read(returned, language)


def _missing(key: str, keys: list[str]) -> EvaluationError:
    shown = ", ".join(repr(name[:_SHOWN_CHARS]) for name in keys[:_SHOWN_KEYS])
    more = f" and {len(keys) - _SHOWN_KEYS} more" if len(keys) > _SHOWN_KEYS else ""
    meant = _probably(key, keys[:_COMPARED_KEYS])
    guess = f"; did you mean settings.correct_answer_key = {meant!r}?" if meant else ""
    return EvaluationError(
        ErrorCode.MISSING_INPUT,
        f"inputs has no {key!r}, which settings.correct_answer_key names as the correct answer",
        hint=f"inputs has {shown}{more}{guess}" if keys else f"inputs is empty; add {key!r} to it",
    )


def _probably(key: str, keys: list[str]) -> str | None:
    folded = {name[:_SHOWN_CHARS].casefold().replace("-", "_").replace(" ", "_"): name for name in reversed(keys)}
    near = nearest_name(key, folded, alike=0.7)
    return folded[near] if near is not None else next((folded[name] for name in _USUAL_KEYS if name in folded), None)


DIALECT: Final = Dialect(
    contract=Contract.EVALUATE_V1,
    bind=bind,
    interpret=interpret,
    takes=("correct_answer_key", "config"),
    positions=("app_params", "inputs", "output", "correct_answer"),
)
