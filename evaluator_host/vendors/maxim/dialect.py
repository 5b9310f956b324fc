"""Arguments and results of Maxim's evaluators (dialect `maxim`): `validate(input, output, expected_output, context)`.

Source of the rules: Maxim's page "Create programmatic evaluators", which describes the function and what it may return.
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
    question,
    scored,
    shown,
    text_of,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.outcome import EvaluationError, Kind, Returned

_SPELLINGS: Final = (
    ("expected_output", "expectedOutput"),
    ("context", "contextToEvaluate", "context_to_evaluate"),
)
_CONTEXTS: Final = ("context", "contexts", "retrieved_contexts")
_HINT: Final = "return a number, a bool or a string, as the evaluator's response type requires"


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the arguments by name, each under all accepted spellings, such as `expectedOutput`."""
    bound = bind_native(row, settings, _values, needs="output")
    if isinstance(bound, EvaluationError):
        return bound
    values = _values(row, settings) if row.variables is None else row.variables
    for names in _SPELLINGS:
        value = next((values[name] for name in names if name in values), None)
        values = {**dict.fromkeys(names, value), **values}
    return Binding({"args": [values]})


def _values(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    context = next((inputs[name] for name in _CONTEXTS if name in inputs), None)
    values = {"input": text_of(question(inputs)), "output": text_of(row.outputs), "context": context}
    return {**inputs, **values, "expected_output": truth}


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    """Read a number, a bool, or a string, which becomes the label."""
    if (error := unreadable(returned)) is not None:
        return error
    value: Json = None if returned.kind is Kind.MISSING else returned.value
    if not isinstance(value, bool | str) and not is_number(value):
        return invalid(f"`validate` returned {shown(value)}", _HINT)
    return scored([NamedScore("validate", value)], ({"result": value},))


DIALECT: Final = Dialect(
    contract=Contract("maxim"),
    bind=bind,
    interpret=interpret,
    native_row={"input": "What is the capital of France?", "output": "Paris", "expectedOutput": "Paris"},
    takes=("correct_answer_key", "variables"),
    truth=("expected_output",),
    truth_or_column=("expectedOutput",),
)
