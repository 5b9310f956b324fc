"""NVIDIA's own RAGAS metric, which calls a judge, works with its real packages through the host's gateway for models."""

from pathlib import Path
from typing import Any, Final

import pytest

from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.dialects.nemo.metrics import REAL
from tests.model_server import ModelServer
from tests.models.conftest import KEY, granting_on

pytestmark = [pytest.mark.engine, pytest.mark.differential, pytest.mark.timeout(900)]

PACKAGES: Final = (*REAL, "ragas==0.4.3", "langchain-community==0.3.31")
ACCURACY: Final = """
import os

from nemo_evaluator_sdk import Model
from nemo_evaluator_sdk.metrics.ragas import AnswerAccuracyMetric

metric = AnswerAccuracyMetric(
    judge_model=Model(url=os.environ["OPENAI_BASE_URL"], name="judge", format="openai"),
    input_template={
        "user_input": "{{ item.question }}",
        "response": "{{ item.output }}",
        "reference": "{{ item.correct_answer }}",
    },
)
"""


class Rates(ModelServer):
    """A model server that acts as a judge: answers with Paris get 4 of 4 points, and other answers get 2."""

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        made = super().completion(body)
        made["choices"][0]["message"]["content"] = "4" if "is Paris" in str(body["messages"]) else "2"
        return made


async def test_a_ragas_metric_asks_its_judge_through_the_gateway(tmp_path: Path) -> None:
    evaluator = Evaluator(ACCURACY, packages=PACKAGES, models=("judge",), limits=Limits(memory_mb=1500, timeout_s=60))
    with Rates(key=KEY, plays_all=True) as server:
        async with granting_on("bubblewrap", server, tmp_path) as granting:
            for said, score in (("It is Paris.", 1.0), ("It is Oslo.", 0.5)):
                row = Row({"question": "Capital of France?", "correct_answer": "Paris"}, said)
                result = await granting.service.evaluate(evaluator, row)
                assert (result.score, result.metrics) == (score, {"answer_accuracy": score}), result
                assert result.usage is not None
                assert result.usage.requests == 2
        assert len(server.asked) == 4
