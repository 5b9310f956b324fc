"""Arguments and results of Galileo's metrics (dialect `galileo`): `scorer_fn(step_object)`, `aggregator_fn(scores)`.

The runner sends `{"score": value}` for a row, with `metadata` if the code returned a pair, and `{"aggregate": value}`
for all rows together. Source of the rules: galileo 2.7.0, utils/metrics.py.
"""

from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    is_number,
    object_sent,
    question,
    scored,
    shown,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Note, Returned

_STORED: Final = Note("no_score", "Galileo stores this value; it is not a number, bool or string, so score is null")
_HINT: Final = "return a number, a bool, a string, or a pair of one of these and a dict"


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return a scorer's keyword arguments: the row's `variables`, or a `step_object` made from its other fields."""
    return bind_native(row, settings, _step, needs="step_object")


def bind_one_of_many(row: Row, settings: EvaluatorSettings) -> Binding:
    """Return the arguments for one of several rows. The runner scores each row, then aggregates the scores."""
    return Binding([row.variables or _step(row, settings)])


def _step(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    text = question(inputs)
    step: dict[str, Json] = {"input": text, "output": row.outputs, "dataset_output": truth}
    older: dict[str, Json] = {"index": row.index or 0, "node_input": text, "node_output": row.outputs}
    named: dict[str, Json] = {"input": text, "output": row.outputs, "response": row.outputs, "ground_truth": truth}
    variables = inputs if truth is None else {**inputs, "target": truth}
    return {"step_object": step, **older, **named, "dataset_variables": variables}


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    """Read a row's score and metadata, or the aggregated values of all rows; a score of None skips the row."""
    value = object_sent(returned)
    if isinstance(value, EvaluationError):
        return value
    if "aggregate" in value:
        return _aggregated(value["aggregate"])
    score = value.get("score")
    if score is None:
        return Scored(None, None, {}, native=(value,), skipped=True)
    if not isinstance(score, bool | str) and not is_number(score):
        if isinstance(score, list | dict):
            return Scored(None, None, {}, native=(value,), notes=(_STORED,))
        return invalid(f"Galileo does not accept {shown(score)}", _HINT)
    return scored([NamedScore("scorer_fn", score)], (value,))


def _aggregated(value: Json) -> Scored | EvaluationError:
    values = value if isinstance(value, dict) else {"scorer_fn": value}
    named = [NamedScore(name, one) for name, one in values.items() if isinstance(one, bool | str) or is_number(one)]
    named.sort(key=lambda one: isinstance(one.value, str))
    return scored(named, (values,), first_leads=True)


DIALECT: Final = Dialect(
    contract=Contract("galileo"),
    bind=bind,
    interpret=interpret,
    bind_one_of_many=bind_one_of_many,
    languages=PYTHON_ONLY,
    native_row={
        "step_object": {
            "type": "llm",
            "input": [{"role": "user", "content": "What is the capital of France?"}],
            "output": {"role": "assistant", "content": "Paris"},
            "dataset_output": "Paris",
        }
    },
    takes=("correct_answer_key", "messages", "variables"),
    truth=("dataset_output", "ground_truth"),
    sdk=Sdk(
        module="galileo",
        stand_in=StandIn("dialects/galileo/modules", preimport="galileo"),
        real=frozenset({"galileo", "galileo-core"}),
        also=("galileo_core",),
    ),
)
