"""Arguments and results of Patronus' evaluators (dialect `patronus`): decorated functions, and evaluator classes.

The runner sends `{"result": {…}}` with the fields of an `EvaluationResult` that are set, `{"result": null}` for None,
or `{"returned": type}` for any other value. Source of the rules: patronus 0.1.26, evals/evaluators.py.
"""

from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.native import NamedScore, bind_native, invalid, object_sent, scored, without_truth
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Returned


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the arguments that an experiment passes: `{"row": {"task_input", "task_output", "gold_answer", …}}`."""
    return bind_native(row, settings, _row, needs="row", inner="row", beside=("task_result", "parent"))


def _row(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    only = next(iter(inputs.values())) if len(inputs) == 1 else inputs
    fields = {"task_input": inputs.get("task_input", only), "task_output": row.outputs, "gold_answer": truth}
    return {"row": {**inputs, **fields}}


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    """Read the `EvaluationResult`: its score, `pass_`, explanation and text output; None skips the row."""
    value = object_sent(returned)
    if isinstance(value, EvaluationError):
        return value
    if "returned" in value:
        hint = "return an EvaluationResult, a number, a bool or a string"
        return invalid(f"the evaluator returned {str(value['returned'])[:100]}, which Patronus refuses", hint)
    result = value.get("result")
    if result is None:
        return Scored(None, None, {}, skipped=True)
    if not isinstance(result, dict):
        return contradiction()
    passed, reason, text = result.get("pass_"), result.get("explanation"), result.get("text_output")
    found = scored([NamedScore("score", result.get("score"), reason, passed)], (result,))
    if isinstance(found, EvaluationError):
        return found
    notes = () if text is not None or passed is not None else found.notes
    return replace(found, label=text, reason=reason, passed=passed, notes=notes if found.score is None else found.notes)


DIALECT: Final = Dialect(
    contract=Contract("patronus"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    native_row={
        "row": {"task_input": "What is the capital of France?", "task_output": "Paris", "gold_answer": "Paris"}
    },
    takes=("correct_answer_key", "config", "variables"),
    truth=("gold_answer",),
    truth_or_column=("expected",),
    sdk=Sdk(
        module="patronus",
        stand_in=StandIn("dialects/patronus/modules", preimport="patronus"),
        real=frozenset({"patronus"}),
    ),
)
