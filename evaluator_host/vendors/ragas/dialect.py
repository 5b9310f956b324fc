"""Arguments and results of Ragas' discrete, numeric and ranking metrics (dialect `ragas`).

The runner sends `{"name", "value", "reason", "allowed"}`; `allowed` are the words of a discrete metric. Source of the
rules: ragas 0.4.3, metrics/decorator.py, validators.py, result.py.
"""

from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    object_sent,
    question,
    scored,
    with_outputs,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Returned

_VERDICTS: Final = ({"pass": True, "fail": False}, {"yes": True, "no": False})


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return arguments by name: the row's `variables`, or values from the row's other fields."""
    return bind_native(row, settings, _arguments, needs="")


def _arguments(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    own: dict[str, Json] = {"user_input": question(inputs), **({} if inputs is row.inputs else {"reference": truth})}
    return with_outputs({**own, **inputs}, row.outputs, "response")


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the result: a number is the score, a word is the label; pass, fail, yes and no also give a score."""
    found = object_sent(returned)
    if isinstance(found, EvaluationError):
        return found
    name, value, reason = str(found.get("name")), found.get("value"), found.get("reason")
    why = reason if isinstance(reason, str) else None
    native = ({"name": name, "value": value, "reason": reason},)
    if value is None:
        return Scored(None, None, {}, native=native, error=invalid(why or f"metric {name} has no value"))
    if isinstance(value, str):
        allowed = found.get("allowed")
        words = set(map(str, allowed)) if isinstance(allowed, list) else set[str]()
        verdict = next((one for one in _VERDICTS if words == set(one)), None)
        score = NamedScore(name, verdict[value] if verdict is not None and value in verdict else value, why)
        read = scored([score], native)
        return replace(read, label=value) if isinstance(read, Scored) else read
    number = value if isinstance(value, bool | int | float) else None
    return scored([NamedScore(name, number, why)], native)


DIALECT: Final = Dialect(
    contract=Contract("ragas"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    native_row={"response": "Paris", "reference": "Paris"},
    takes=("correct_answer_key", "variables"),
    truth_or_column=("reference",),
    sdk=Sdk(
        module="ragas",
        stand_in=StandIn("dialects/ragas/modules", preimport="ragas.metrics"),
        real=frozenset({"ragas"}),
        decorators=("discrete_metric", "numeric_metric", "ranking_metric"),
    ),
)
