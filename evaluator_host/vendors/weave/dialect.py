"""Arguments and results of Weave's scorers (dialect `weave`), which return a number, a bool or a dict of these.

The runner sends `{"result": value}`. Source of the rules: weave 0.54.0, flow/scorer.py.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    is_number,
    object_sent,
    scored,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Note, Returned

_MOST_LEAVES: Final = 1000
_FIRST: Final = ("score", "passed")
_OLDER_OUTPUT: Final = "model_output"


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return Weave's row: `{"example": columns, "output": …}`; `variables` may have the older name `model_output`."""
    given = row.variables
    if given is not None and "output" not in given and _OLDER_OUTPUT in given:
        renamed = {"output" if name == _OLDER_OUTPUT else name: value for name, value in given.items()}
        row = replace(row, variables=renamed)
    return bind_native(row, settings, _example, needs="output", inner="example")


def _example(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    columns = inputs if inputs is row.inputs else {"expected": truth, "target": truth, **row.inputs}
    return {"example": columns, "output": row.outputs}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the result.

    A plain value is the score. In a dict the score is `score`, else `passed`, else the only number or bool.

    Weave itself does not reduce a result to one score. None and `{}` skip the row. Several numbers without `score` or
    `passed` give no score.
    """
    sent = object_sent(returned)
    if isinstance(sent, EvaluationError):
        return sent
    if "result" not in sent:
        return contradiction()
    result = sent["result"]
    native = ({"result": result, "summary": _summary(result)},)
    if result is None or result == {}:
        return Scored(None, None, {}, native=native, skipped=True)
    if not isinstance(result, dict):
        value = result if isinstance(result, str | bool) or is_number(result) else None
        return scored([NamedScore("score", value)], native)
    leaves = list(_leaves(result))[:_MOST_LEAVES]
    ranked = _ranked(leaves)
    if ranked is None:
        metrics = {name: value for name, value in leaves if not isinstance(value, str)}
        note = Note("no_score", "the scorer returned no `score`, no `passed` and several numbers; score is null")
        return Scored(None, None, {k: float(v) for k, v in metrics.items()}, notes=(note,), native=native)
    first = [one for one in leaves if one[0] == ranked]
    others = [one for one in leaves if one[0] != ranked and not isinstance(one[1], str)]
    return scored([NamedScore(name, value) for name, value in (*first, *others)], native, first_leads=True)


def _ranked(leaves: list[tuple[str, Json]]) -> str | None:
    """Return the name of the value that is the score: `score`, else `passed`, else the only number or bool, or None.

    If `score` or `passed` is a string, that string becomes the label, and there is no score.
    """
    numbers = [name for name, value in leaves if not isinstance(value, str)]
    for name in (*(one for one in _FIRST if one in numbers), *_FIRST):
        if name in dict(leaves):
            return name
    return numbers[0] if len(numbers) == 1 else None


def _leaves(value: dict[str, Json], prefix: str = "") -> Iterator[tuple[str, Json]]:
    """Yield numbers, bools and strings, each with its dotted name."""
    for key, one in value.items():
        if isinstance(one, dict):
            yield from _leaves(one, f"{prefix}{key}.")
        elif isinstance(one, bool | str) or is_number(one):
            yield f"{prefix}{key}", one


def _summary(value: Json) -> Json:
    """Summarize one result as Weave does: for each key, the count of true values or the mean of numbers."""
    if isinstance(value, bool):
        return {"true_count": int(value), "true_fraction": float(value)}
    if is_number(value):
        return {"mean": float(value)}
    if isinstance(value, dict):
        found = {key: summary for key, one in value.items() if (summary := _summary(one)) is not None}
        return found or None
    return None


DIALECT: Final = Dialect(
    contract=Contract("weave"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    native_row={"output": "Paris", "example": {"question": "What is the capital of France?", "expected": "Paris"}},
    takes=("correct_answer_key", "config", "variables"),
    truth_or_column=("expected", "target"),
    sdk=Sdk(
        module="weave",
        stand_in=StandIn("dialects/weave/modules", preimport="weave"),
        real=frozenset({"weave"}),
        decorators=("weave.op",),
    ),
)
