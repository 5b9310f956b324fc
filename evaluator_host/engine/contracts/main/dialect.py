"""Dialect `main`: arguments by name (Python) or in one object (JavaScript); returns an object with `score`."""

import json
from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts import interpret as reading
from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import with_outputs
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import EvaluationError, Kind, Note, Returned

_OUTPUT_NAMES: Final = ("completion", "output", "outputs")


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the caller's variables as arguments.

    If there are none, return the inputs, and the outputs under every accepted name.
    """
    if row.variables is not None:
        return Binding({"named": row.variables, "exact": True})
    return Binding({"named": with_outputs(row.inputs, row.outputs, *_OUTPUT_NAMES), "exact": False})


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Convert the returned value to a score: a bare number or bool is a score; an object needs the key `score`."""
    if returned.kind is Kind.STRING and isinstance(returned.value, str):
        return _from_json(returned.value, language)
    read = reading.read(returned, language, needs_score=True)
    if returned.kind in (Kind.NUMBER, Kind.BOOL) and isinstance(read, Scored):
        shape = reading.terms(language).shape
        return replace(
            read,
            notes=(
                Note("bare_score", f"main is documented to return {shape}; the returned value was taken as the score"),
            ),
        )
    return read


def _from_json(text: str, language: Language) -> Scored | EvaluationError:
    """Read a string that contains a JSON object with a score; any other string is an error."""
    value = None
    if text.lstrip()[:1] == "{":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, dict):
        return reading.invalid_text(text, language, needs_score=True)
    read = reading.mapping(value, language, needs_score=True)
    if isinstance(read, Scored):
        return replace(read, notes=(Note("coerced", "the returned text was read as JSON"), *read.notes))
    return read


DIALECT: Final = Dialect(contract=Contract.MAIN, bind=bind, interpret=interpret, takes=("variables",))
