"""An evaluator may return thousands of scores: the time to read them is proportional to their number."""

import time
from typing import Any

import pytest

from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.types.evaluator import Contract, Language
from evaluator_host.types.outcome import Kind, Returned


def sent(key: str, number: int) -> dict[str, Any]:
    return {key: [{"name": f"s{place}", "value": place / number} for place in range(number)]}


def listed(number: int) -> list[Any]:
    return [{"name": f"s{place}", "score": place / number} for place in range(number)]


def seconds_for(contract: str, value: Any) -> float:
    began = time.process_time()
    read = dialect_of(Contract(contract)).interpret(
        Returned(Kind.ARRAY if isinstance(value, list) else Kind.OBJECT, value), Language.PYTHON
    )
    assert isinstance(read, Scored)
    assert read.score == pytest.approx(0.5, abs=0.01)
    return time.process_time() - began


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("contract", "make"),
    [
        ("evaluate", listed),
        ("mlflow", lambda number: sent("feedbacks", number)),
        ("opik", lambda number: sent("scores", number)),
    ],
    ids=["evaluate", "mlflow", "opik"],
)
def test_many_scores_are_read_in_linear_time(contract: str, make: Any) -> None:
    few, many = (min(seconds_for(contract, make(number)) for _ in range(3)) for number in (2_000, 8_000))
    assert many < 8 * few  # four times as many scores; comparing each score with all others would take 16 times as long
