"""Makes results of rows for tests."""

import dataclasses
from typing import Any

from evaluator_host.engine.service.row_io import normalise
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.outcome import EvaluationResult
from tests.unit.normalising import info, returned


def result_of(**changes: Any) -> EvaluationResult:
    """Return the result of a row that scored 0; keywords change its fields."""
    return dataclasses.replace(normalise(returned(0.0), Evaluator("x"), info=info()), **changes)
