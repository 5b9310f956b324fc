"""If an evaluator pins NeMo's SDK, it gets that package, not the host's small replacement. Both give the same results.

The package set has 140 packages, and is installed once, into the data directory that all test runs share.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Limits, Row
from evaluator_host.types.outcome import EvaluationResult
from evaluator_host.vendors.nemo.bundles import evaluator_of
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.nemo.judge_model import judge_server
from tests.dialects.nemo.metrics import EVALUATION, GOLDEN, PICKLER, REAL, SUMMARY, returning

pytestmark = [pytest.mark.differential, ON_BUBBLEWRAP]

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
    assert "threads_at_load" not in {note.code for note in real.warnings}, (
        "the package must not start threads, because each row would then load it again"
    )


def asked(program: str, folder: Path, *, packages: Path | None) -> tuple[list[str], list[str]]:
    """Run a program that calls a model, in a separate process; return its output, and the requests that the model got."""
    (folder / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(packages) if packages else ""}
    with judge_server() as model:
        command = [sys.executable, "program.py", model.url]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), sorted(json.dumps(body, sort_keys=True) for body in model.bodies)


@pytest.mark.timeout(900)
async def test_judges_and_online_runs_ask_and_say_the_same_in_the_real_package(
    service: Service, tmp_path: Path
) -> None:
    known = await service.environments.require(REAL, Language.PYTHON)
    program = (GOLDEN / "judge.py").read_text("utf-8")
    light = asked(program.replace("from nemo_evaluator_sdk", "from evaluator_host.sdk"), tmp_path, packages=None)
    real = asked(program, tmp_path, packages=known.environment.path)

    assert light[0] == real[0]
    assert light[1] == real[1]
    assert (len(light[0]) > 100, len(light[1]) > 30) == (True, True)


async def test_the_real_package_is_found_where_it_is_pinned(service: Service) -> None:
    code = returning("True")
    light, real = [await loaded(service, WHERE + code, real=real) for real in (False, True)]

    assert light.logs.stdout.startswith("/opt/runner/dialects/nemo/modules/")
    assert real.logs.stdout.startswith("/opt/packages/")
    assert (light.passed, real.passed) == (True, True)


async def test_a_pickled_metric_is_opened_by_the_package_that_its_labels_pin(service: Service) -> None:
    pickler = await service.evaluate(Evaluator(PICKLER, contract=Contract.EVALUATE, limits=Limits(timeout_s=60)), Row())
    assert pickler.error is None, pickler.error
    payload = {"kind": "cloudpickle", "blob": pickler.reason, "python_version": sys.version.split()[0]}
    labels = {"evaluator_host.packages": " ".join(REAL[:1] + REAL[2:]), "evaluator_host.memory_mb": "768"}
    outputs = [{"name": "p", "value_json_schema": {"type": "integer"}}]
    bundle = {"metric_type": "minor", "metadata": {"labels": labels}, "outputs": outputs, "payload": payload}
    opened = evaluator_of(bundle, field="metric")
    assert set(opened.packages) == set(REAL)

    result = await service.evaluate(replace(opened, code=WHERE + opened.code), Row())
    assert result.error is None, result.error
    assert result.score == sys.version_info[1]
    assert result.logs.stdout.startswith("/opt/packages/")


async def test_the_documented_evaluation_is_the_real_packages(service: Service) -> None:
    real = await loaded(service, f"{EVALUATION}\nresult.print_summary()\n", real=True)
    assert real.logs.stdout == SUMMARY
    assert real.metrics == {"valid_expression": 1.0, "correct_value": 1.0}


RAGAS: Final = (*REAL, "ragas==0.4.3", "langchain-community==0.3.31")
TOOL_CALLS: Final = """
from nemo_evaluator_sdk.metrics.ragas import ToolCallAccuracyMetric

metric = ToolCallAccuracyMetric(
    input_template={
        "user_input": "{{ item.user_input }}",
        "reference_tool_calls": "{{ item.reference_tool_calls }}",
    }
)
"""


@pytest.mark.timeout(900)
async def test_metrics_of_ragas_that_need_no_judge_run_with_their_pins(service: Service) -> None:
    call = {"name": "weather", "args": {"city": "Rome"}}
    said = [{"type": "human", "content": "?"}, {"type": "ai", "content": "", "tool_calls": [call]}]
    evaluator = Evaluator(TOOL_CALLS, packages=RAGAS, limits=Limits(memory_mb=1500, timeout_s=60))
    for wanted, score in ((call, 1.0), ({"name": "news", "args": {}}, 0.0)):
        row = Row({"user_input": said, "reference_tool_calls": [wanted]}, "x")
        result = await service.evaluate(evaluator, row)
        assert (result.score, result.metrics) == (score, {"tool_call_accuracy": score}), result
