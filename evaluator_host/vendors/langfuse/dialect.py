"""Arguments and results of Langfuse's evaluators (dialect `langfuse`): `evaluate(ctx)` returns named scores.

Source of the rules: langfuse/langfuse@62751446, packages/shared/src/server/evals/codeEvalDispatcherTypes.ts.
"""

from collections.abc import Callable
from typing import Final

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    is_number,
    own_columns,
    scored,
    shown,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.outcome import EvaluationError, Kind, Returned

_TRUTH: Final = frozenset({"expectedOutput", "expected_output"})
_OTHERS: Final = frozenset({"id", "toolCalls"})
_TEXT_CHARS: Final = 500
_BOOLEANS: Final = {"true": 1, "1": 1, "false": 0, "0": 0}
_TEXTS: Final = ("comment", "configId")
_SHAPE: Final = 'return {"scores": [{"name": …, "value": …, "dataType": "NUMERIC"}]}'


class _Refused(Exception):
    """Langfuse does not accept a score; the message says why."""


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the `ctx` argument: the row's `variables`, or an object made from the row's other fields."""
    return bind_native(row, settings, _context, needs="observation")


def _context(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    own = own_columns(row, settings, truth=_TRUTH, others=_OTHERS)
    observation = {"input": inputs, "output": row.outputs, "metadata": row.trace or {}, "toolCalls": []}
    if own is not None:
        observation |= {"input": own["input"], "metadata": own.get("metadata") or observation["metadata"]}
    experiment = None if inputs is row.inputs else {"itemExpectedOutput": truth, "itemMetadata": None}
    return {"observation": observation, "experiment": experiment}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the returned scores by their `dataType`; the row's score is the mean of the numbers and booleans."""
    if (error := unreadable(returned)) is not None:
        return error
    value = returned.value
    if returned.kind is not Kind.OBJECT or not isinstance(value, dict) or not isinstance(value.get("scores"), list):
        return invalid("the returned value is not an object with a list `scores`", _SHAPE)
    if not value["scores"]:
        return invalid("`scores` is empty; Langfuse needs at least one score", _SHAPE)
    try:
        native = [_score(one, f"scores[{index}]") for index, one in enumerate(value["scores"])]
    except _Refused as refused:
        return invalid(str(refused), _SHAPE)
    return scored(map(_named, native), native, chosen=settings.score_output)


def _named(one: dict[str, Json]) -> NamedScore:
    value = bool(one["value"]) if one.get("dataType") == "BOOLEAN" else one["value"]
    return NamedScore(one["name"], value, one.get("comment"))


def _score(raw: Json, path: str) -> dict[str, Json]:
    """Check a returned score, and convert it to the form that Langfuse stores.

    Raises:
      _Refused: Langfuse does not accept the score.
    """
    if not isinstance(raw, dict):
        raise _Refused(f"{path} is {shown(raw)}, not an object")
    if not isinstance(raw.get("name"), str) or not raw["name"]:
        raise _Refused(f"{path}.name is {shown(raw.get('name'))}, not a string")
    for name in _TEXTS:
        if not isinstance(raw.get(name), str | None):
            raise _Refused(f"{path}.{name} is {shown(raw[name])}, not a string")
    kind, value = raw.get("dataType"), raw.get("value")
    if not isinstance(kind, str | None) or kind not in _VALUES:
        raise _Refused(f"{path}.dataType is {shown(kind)}; it must be one of {', '.join(filter(None, _VALUES))}")
    stored = _VALUES[kind](value)
    if stored is None:
        raise _Refused(f"{path}.value is {shown(value)}, which {kind or 'a score without dataType'} does not accept")
    more = {name: raw[name] for name in (*_TEXTS, "metadata") if raw.get(name) is not None}
    return {"name": raw["name"], "value": stored, **({} if kind is None else {"dataType": kind}), **more}


def _number(value: Json) -> Json:
    return value if is_number(value) else None


def _boolean(value: Json) -> int | None:
    if isinstance(value, bool | int | float):
        return int(value) if value in (0, 1) else None
    return _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None


def _category(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and 1 <= len(value) <= _TEXT_CHARS else None


def _untyped(value: Json) -> Json:
    return value if isinstance(value, str) else _number(value)


_VALUES: Final[dict[str | None, Callable[[Json], Json]]] = {
    "NUMERIC": _number,
    "BOOLEAN": _boolean,
    "CATEGORICAL": _category,
    "TEXT": _text,
    None: _untyped,
}

DIALECT: Final = Dialect(
    contract=Contract("langfuse"),
    bind=bind,
    interpret=interpret,
    native_row={
        "observation": {
            "input": {"question": "What is the capital of France?"},
            "output": "Paris",
            "metadata": {},
            "toolCalls": [],
        },
        "experiment": {"itemExpectedOutput": "Paris", "itemMetadata": None},
    },
    takes=("correct_answer_key", "score_output", "variables"),
    truth=("item_expected_output", "itemExpectedOutput"),
)
