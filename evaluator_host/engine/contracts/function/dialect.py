"""Dialect `function`: functions with any name, such as `score(output, expected)`; parameter names set the arguments.

Python's runner passes a value of the row for each parameter name; JavaScript gets one object with all names.
"""

from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts import trace_tree
from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.evaluate import dialect as evaluate
from evaluator_host.engine.contracts.interpret import Scored, mapping
from evaluator_host.engine.contracts.native import question, without_truth
from evaluator_host.engine.contracts.score_lists import (
    inner_scores,
    read_score_list,
    with_inner,
    with_measure,
    with_score,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.outcome import EvaluationError, Kind, Note, Returned

_OUTPUTS: Final = (
    *("output", "outputs", "response", "prediction", "predicted", "pred", "completion", "actual", "actualOutput"),
    *("actual_output", "modelOutput", "model_output", "generated", "candidate", "finalAnswer", "final_answer"),
)
_TRUTHS: Final = (
    *("expected", "expectedOutput", "expected_output", "expectedAnswer", "expected_answer", "reference"),
    *("referenceOutput", "referenceAnswer", "reference_answer", "groundTruth", "ground_truth", "gold", "target"),
    *("correctAnswer", "correct_answer", "ideal", "truth", "label", "expect"),
)
_SKIPPED: Final = Note("skipped", "the function returned nothing, which means that it does not apply to this row")
_QUESTIONS: Final = ("question", "query", "prompt", "userInput", "user_input")


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return `{"columns", "inputs", "outputs", "trace", "truth"?}`.

    If the row has `variables` that contain an output, or no outputs, return only the variables, as `columns`. If the
    row has outputs and the variables do not, the variables count as inputs.
    """
    row = _one_form(row)
    if row.variables is not None:
        return Binding({"args": [{"columns": row.variables}]})
    inputs, truth = without_truth(row, settings)
    trace, notes = trace_tree.convert(row.trace)
    given: dict[str, Json] = {"columns": row.inputs, "inputs": inputs, "outputs": row.outputs, "trace": trace}
    return Binding({"args": [given if inputs is row.inputs else {**given, "truth": truth}]}, notes)


def bind_javascript(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return one object with the row's columns, and with output, ground truth and input under all their usual names."""
    row = _one_form(row)
    if row.variables is not None:
        return Binding(
            {"args": [{**_alike(row.variables, _OUTPUTS), **_alike(row.variables, _TRUTHS), **row.variables}]}
        )
    inputs, truth = without_truth(row, settings)
    trace, notes = trace_tree.convert(row.trace)
    given: dict[str, Json] = {"input": row.inputs, "inputs": row.inputs, "trace": trace, "metadata": {}}
    asked = question(inputs)
    if asked is not inputs:
        given.update(dict.fromkeys(_QUESTIONS, asked))
    if inputs is not row.inputs:
        given.update(dict.fromkeys(_TRUTHS, truth))
    else:
        given.update(_alike(inputs, _TRUTHS))
    outputs = dict.fromkeys(_OUTPUTS, row.outputs)
    if row.outputs is None:  # without outputs, an input may have the name of an output
        return Binding({"args": [{**given, **outputs, **row.inputs}]}, notes)
    return Binding({"args": [{**given, **row.inputs, **outputs}]}, notes)


def _one_form(row: Row) -> Row:
    """Return a row that has either outputs or variables.

    If the row has both, the variables become inputs. But if the variables contain an output, they are the whole row, as
    in the contracts of other platforms.
    """
    if row.variables is None or row.outputs is None:
        return row
    if any(name in row.variables for name in _OUTPUTS):
        return replace(row, inputs={}, outputs=None)
    return replace(row, inputs={**row.inputs, **row.variables}, variables=None)


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the score by the rules of dialect `evaluate`. None and null mean that the function does not apply."""
    if returned.kind is Kind.NULL:
        return Scored(None, None, {}, notes=(_SKIPPED,), skipped=True)
    if returned.kind is Kind.OBJECT and isinstance(returned.value, dict):
        chosen = settings.score_output
        whole = with_inner(with_measure(with_score(returned.value)))
        if chosen is not None and isinstance(returned.value.get(chosen), int | float):
            whole = {**whole, "score": returned.value[chosen], "name": None}  # `name` may be the name of another score
        if (mean := _mean_inside(whole, language, chosen)) is not None:
            return mean
        returned = replace(returned, value=whole)
        found, name = evaluate.interpret(returned, language, settings=settings), whole.get("name")
        return replace(found, name=name) if isinstance(found, Scored) and isinstance(name, str) else found
    return evaluate.interpret(returned, language, settings=settings)


def _mean_inside(whole: dict[str, Json], language: Language, chosen: str | None) -> Scored | EvaluationError | None:
    """Read an object that contains several scores; the result is their mean, or the score with the name `chosen`.

    Return None if the object contains no scores, or if `chosen` is a metric's whole name, such as `scores.clear`.
    """
    inner = inner_scores(whole, chosen)
    mean = None if inner is None else read_score_list(inner, language, chosen=chosen)
    if mean is None or isinstance(mean, EvaluationError):
        return mean if chosen is not None else None
    found = mapping({**whole, "score": mean.score}, language)
    if isinstance(found, EvaluationError):
        return None
    if mean.error is not None and chosen not in found.metrics:
        return mean.error
    return None if mean.score is None else replace(found, passed=mean.passed, notes=(*mean.notes, *found.notes))


def _alike(columns: dict[str, Json], names: tuple[str, ...]) -> dict[str, Json]:
    """Find the only column with a name in `names`, and return its value under each of these names.

    If there is no such column, or more than one, return an empty object.
    """
    found = [name for name in names if name in columns]
    return dict.fromkeys(names, columns[found[0]]) if len(found) == 1 else {}


DIALECT: Final = Dialect(
    contract=Contract.FUNCTION,
    bind=bind,
    bind_javascript=bind_javascript,
    interpret=interpret,
    takes=("correct_answer_key", "score_output", "variables"),
)
