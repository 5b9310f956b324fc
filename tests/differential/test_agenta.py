"""Agenta's evaluators get the same scores here as in Agenta's own package, except for documented differences."""

import json
import math
import subprocess
from typing import Any, Final

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import ON_BUBBLEWRAP
from tests.differential.compare import differences, unexplained
from tests.differential.packages import PROGRAMS, real_python
from tests.differential.programs import agenta_cases

pytestmark = [
    pytest.mark.differential,
    pytest.mark.timeout(600),
    ON_BUBBLEWRAP,
]

DIFFERS: Final = "contracts.md#the-older-signature"
EXPLAINED: Final[dict[str, str]] = {
    r"(right|wrong), version 3: score": DIFFERS,
    r"(score|score and success|several), version [12]: .*": DIFFERS,
    r"(score|several), version 3: passed": DIFFERS,
    r"(not a number|infinite|text of a number), version [12]: .*": DIFFERS,
    r"text, version [12]: .*": DIFFERS,
    r"(text of a number|list), version 3: .*": DIFFERS,
}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = tmp_path_factory.mktemp("agenta") / "found.json"
    command = [str(real_python(PROGRAMS / "agenta.txt")), "agenta_real.py", str(found)]
    done = subprocess.run(command, cwd=PROGRAMS, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    made: dict[str, Any] = json.loads(found.read_text())
    return made


async def test_evaluators_score_as_in_the_real_package(service: Service, real: dict[str, Any]) -> None:
    fields = {}
    for name, (code, version, inputs, outputs) in agenta_cases.cases().items():
        contract = Contract.EVALUATE_V1 if version == "1" else Contract.EVALUATE
        result = await service.evaluate(
            Evaluator(code, contract=contract, threshold=0.5), Row(inputs, outputs, agenta_cases.TRACE)
        )
        fields[name] = list(differences(_of_agenta(real[name]), _of_host(result)))
    assert len(fields) > 60
    left = unexplained(fields, EXPLAINED)
    assert left == {}, json.dumps(left, indent=1)


def _of_agenta(found: dict[str, Any]) -> dict[str, Any]:
    """Return the score, whether the row passed, and the other numbers; for a failed row, only the fact that it failed."""
    if "error" in found:
        return {"failed": True}
    value = found["value"] if isinstance(found["value"], dict) else {}
    score, success = value.get("score"), value.get("success")
    if isinstance(score, float) and not math.isfinite(score):
        score = str(score)
    others = {name: one for name, one in value.items() if type(one) in (int, float) and name != "score"}
    return {"score": score, "passed": success, **others}


def _of_host(result: EvaluationResult) -> dict[str, Any]:
    if result.error is not None:
        return {"failed": True}
    others = {name: one for name, one in result.metrics.items() if name not in ("score", "success")}
    return {"score": result.score, "passed": result.passed, **others}
