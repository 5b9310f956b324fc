"""Scorers of Inspect AI give the same results with the real package, which a pin installs, and with the host's small
replacement of it.
"""

import asyncio
from dataclasses import replace

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Row
from tests.conftest import ON_BUBBLEWRAP

pytestmark = [pytest.mark.engine, pytest.mark.differential, pytest.mark.timeout(900)]
CODE = """
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState

@scorer(metrics=[accuracy()])
def right():
    async def score(state: TaskState, target: Target) -> Score:
        asked = state.messages[-1].text if state.messages else state.input_text
        ok = target.text in state.output.completion
        return Score(value="C" if ok else "I", answer=state.output.completion, explanation=asked, metadata=state.metadata)
    return score
"""
ROWS = [
    Row({"question": "2+2", "correct_answer": "4"}, "It is 4"),
    Row({"question": "2+2", "correct_answer": "4"}, "It is 5"),
    Row({"correct_answer": "4"}, messages=[{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "4"}]),
]


@ON_BUBBLEWRAP
async def test_the_real_package_scores_as_the_light_modules(service: Service) -> None:
    light = Evaluator(CODE)
    real = replace(light, packages=("inspect_ai==0.3.285",))
    for row in ROWS:
        one, other = await asyncio.gather(service.evaluate(light, row), service.evaluate(real, row))
        assert one.error is other.error is None, (one.error, other.error)
        assert (one.score, one.label, one.reason, one.native) == (other.score, other.label, other.reason, other.native)
