"""User code forks, and both copies return a value: the row has only one answer, that of the first copy."""

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Row

FORKS_IN_A_ROW = """
import os, time
def evaluate(inputs, outputs, trace):
    if os.fork() == 0:
        return 0.75
    time.sleep(0.1)  # the copy comes back first
    return 0.25
"""
FORKS_IN_A_RAISING_ROW = FORKS_IN_A_ROW.replace("return 0.75", "raise ValueError('the copy')")
FORKS_WHILE_LOADING = """
import os, time
time.sleep(0.1 if os.fork() else 0)
def evaluate(inputs, outputs, trace):
    return 0.25
"""
COPY_FAILS_TO_LOAD = FORKS_WHILE_LOADING.replace(
    "time.sleep(0.1 if os.fork() else 0)", "if os.fork() == 0: exit(3)\ntime.sleep(0.1)"
)
FORKS_IN_ROWS_THAT_LOAD_AGAIN = (
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n" + FORKS_IN_A_ROW
)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "code",
    [FORKS_IN_A_ROW, FORKS_IN_A_RAISING_ROW, FORKS_WHILE_LOADING, COPY_FAILS_TO_LOAD, FORKS_IN_ROWS_THAT_LOAD_AGAIN],
    ids=["row", "raising row", "load", "failing load", "row that loads again"],
)
async def test_a_copy_that_comes_back_does_not_answer(service: Service, code: str) -> None:
    for _ in range(3):
        result = await service.evaluate(Evaluator(code), Row())
        assert result.score == 0.25, result.error
