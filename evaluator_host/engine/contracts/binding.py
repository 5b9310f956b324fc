"""The body of a `call` message (runtimes/PROTOCOL.md): the arguments for the evaluator's function."""

import json
from dataclasses import dataclass
from typing import Final

import orjson

from evaluator_host.types.evaluator import EvaluatorSettings, Json
from evaluator_host.types.json_values import nests_within
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Note

DEFAULTS: Final = EvaluatorSettings()
ROW_DEPTH: Final = 200  # maximum nesting of a row; decoders recurse, and CPython's fails before a thousand levels


@dataclass(frozen=True, slots=True)
class Binding:
    """The arguments with which the evaluator is called for a row.

    Attributes:
      body: `{"args": […]}` or `{"named": {…}, "exact": bool}`; a list if the row is one of many that are
        scored together.
      notes: Warnings for the result about changes to the row.
    """

    body: dict[str, Json] | list[Json]
    notes: tuple[Note, ...] = ()


def encode(binding: Binding) -> bytes | EvaluationError:
    """Encode the call's body as JSON, or return an error if values are nested too deeply.

    Integers of any length stay exact.
    """
    try:
        return orjson.dumps(binding.body)
    except TypeError:  # an integer over 64 bits, a lone surrogate, or nesting past orjson's limit
        pass
    try:
        if nests_within(binding.body, ROW_DEPTH):
            return json.dumps(binding.body, separators=(",", ":"), allow_nan=False).encode()
        problem = f"it is nested more than {ROW_DEPTH} levels deep"
    except (TypeError, ValueError) as error:
        problem = str(error)
    return EvaluationError(
        ErrorCode.BINDING_ERROR, f"the row cannot be passed to the evaluator: {problem}", hint="send plain JSON values"
    )
