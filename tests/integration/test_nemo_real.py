"""The real package, pinned by an evaluator, takes the place of the light modules; both say the same.

The package set has 140 packages and is installed once, into the data directory that test runs share.
"""

from typing import Final

import pytest

from evaluator_host.model import Evaluator, EvaluatorSettings, Limits, Row
from evaluator_host.outcome import EvaluationResult
from evaluator_host.service import Service
from tests.nemo_metrics import EVALUATION, GOLDEN, SUMMARY, returning

pytestmark = pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)

REAL: Final = (
    "nemo-platform==0.3.0",
    *("jinja2==3.1.6", "jsonpath-ng==1.7.0", "jsonschema==4.25.1", "openai==2.8.0"),  # what its SDK imports
    *("pyarrow==22.0.0", "pydantic==2.12.4", "sacrebleu==2.5.1"),
)
SCENARIOS: Final = (GOLDEN / "scenarios.py").read_text("utf-8")
WHERE: Final = "import nemo_evaluator_sdk\nprint(nemo_evaluator_sdk.__file__)\n"


async def loaded(service: Service, code: str, *, real: bool, entry: str | None = None) -> EvaluationResult:
    evaluator = Evaluator(
        code,
        packages=REAL if real else ("pydantic==2.12.4", "sacrebleu==2.5.1"),
        settings=EvaluatorSettings(entry=entry),
        limits=Limits(memory_mb=768, log_kb=256),
    )
    return await service.evaluate(evaluator, Row({"expected": 55}, "(12 * 4) + 7"))


@pytest.mark.timeout(900)
async def test_metrics_say_the_same_in_the_real_package(service: Service) -> None:
    light = await loaded(service, SCENARIOS, real=False, entry="ONE")
    real = await loaded(service, SCENARIOS, real=True, entry="ONE")

    assert real.logs.stdout.splitlines() == light.logs.stdout.splitlines()
    assert len(light.logs.stdout.splitlines()) > 100
    assert (real.value, real.metrics, real.score) == (light.value, light.metrics, light.score)
    assert real.score == 1.0
    assert "threads_at_load" not in {note.code for note in real.warnings}, "each row would load the package again"


async def test_the_real_package_is_found_where_it_is_pinned(service: Service) -> None:
    code = returning("True")
    light, real = [await loaded(service, WHERE + code, real=real) for real in (False, True)]

    assert light.logs.stdout.startswith("/opt/runner/nemo/")
    assert real.logs.stdout.startswith("/opt/packages/")
    assert (light.passed, real.passed) == (True, True)


async def test_the_documented_evaluation_is_the_real_packages(service: Service) -> None:
    real = await loaded(service, f"{EVALUATION}\nresult.print_summary()\n", real=True)
    assert real.logs.stdout == SUMMARY
    assert real.metrics == {"valid_expression": 1.0, "correct_value": 1.0}
