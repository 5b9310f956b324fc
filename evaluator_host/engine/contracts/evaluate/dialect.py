"""Dialect `evaluate`: `evaluate(inputs, outputs, trace)`, by position; returns a number, a bool or an object."""

from typing import Final

from evaluator_host.engine.contracts import interpret as reading
from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.score_lists import is_score_list, read_score_list
from evaluator_host.engine.contracts.trace_tree import convert
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import EvaluationError, Kind, Returned


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the arguments `inputs`, `outputs` and `trace`; the trace has the shape that `trace_tree` describes."""
    trace, notes = convert(row.trace)
    return Binding({"args": [row.inputs, row.outputs, trace]}, notes)


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Convert the returned value to a score, a label or an error.

    A string is a label, but a string that contains a number is an error: the author forgot to convert it. The score of
    a list of named scores is their mean.
    """
    if returned.kind is Kind.STRING and isinstance(returned.value, str):
        if reading.parsed(returned.value) is None:
            return reading.labelled(returned.value)
        return reading.numeric_text(returned.value, language)
    is_readable = returned.kind is Kind.ARRAY and returned.unsupported is None and not returned.nonfinite
    if is_readable and is_score_list(returned.value):
        return read_score_list(returned.value, language, chosen=settings.score_output)
    return reading.read(returned, language)


DIALECT: Final = Dialect(
    contract=Contract.EVALUATE,
    bind=bind,
    interpret=interpret,
    positions=("inputs", "outputs", "trace"),
    takes=("score_output",),
    unread=frozenset({"inputs", "outputs"}),
)
