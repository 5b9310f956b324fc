"""`evaluator_host.sdk`: code for NeMo Evaluator runs in the user's own process if only its import line is changed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.sdk import exports as everything
from evaluator_host.sdk import values
from tests.dialects.nemo.metrics import EVALUATION, RESULT, SUMMARY


def own(code: str, folder: Path) -> str:
    """Run a program that imports `evaluator_host.sdk` in place of NeMo's SDK, and return the program's output."""
    program = code.replace("from nemo_evaluator_sdk", "from evaluator_host.sdk")
    assert program != code
    (folder / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_evaluation_prints_and_returns_what_it_does_there(tmp_path: Path) -> None:
    assert own(EVALUATION + "\nresult.print_summary()\n", tmp_path) == SUMMARY
    assert json.loads(own(EVALUATION + "\nprint(result.model_dump_json())\n", tmp_path)) == RESULT


@pytest.mark.long
@pytest.mark.parametrize("call", ["asyncio.run(main())", "asyncio.run(inside())"])
@pytest.mark.slow
def test_built_in_metrics_run_from_async_code_and_from_within_a_loop(call: str, tmp_path: Path) -> None:
    code = f"""
import asyncio
from nemo_evaluator_sdk import Evaluator, ExactMatchMetric, RunConfig
from nemo_evaluator_sdk.values import EvaluationResult

metric = ExactMatchMetric(reference="{{{{item.gold}}}}", candidate="{{{{item.said}}}}")
rows = [{{"gold": "Paris", "said": "paris"}}, {{"gold": "Rome", "said": "Milan"}}]

async def main():
    return await Evaluator().run(metrics=metric, dataset=rows, config=RunConfig(parallelism=2))

async def inside():
    return Evaluator().run_sync(metrics=metric, dataset=rows)

result = {call}
assert isinstance(result, EvaluationResult)
print(len(result.row_scores), result.aggregate_scores.scores[0].mean)
"""
    assert own(code, tmp_path) == "2 0.5\n"


def test_it_imports_nothing_of_a_host(tmp_path: Path) -> None:
    code = "from nemo_evaluator_sdk import Evaluator\nimport sys\nprint(*sys.modules)\n"
    loaded = own(code, tmp_path).split()
    assert not {"docker", "sqlalchemy", "fastapi", "httpx", "pandas"} & set(loaded)


@pytest.mark.long
def test_names_are_those_of_the_modules_that_have_them() -> None:
    light = Path(everything.__file__).parent
    lazily = subprocess.run(
        [sys.executable, "-c", "import nemo_evaluator_sdk as n; print(*(f'{k}={getattr(n, k)!r}' for k in n.__all__), sep='\\n')"],
        env={"PYTHONPATH": str(light.parent)}, capture_output=True, text=True, check=True,
    ).stdout.replace("nemo_evaluator_sdk", "evaluator_host.sdk")  # fmt: skip
    at_once = "\n".join(
        f"{name}={getattr(everything, name)!r}" for name in sorted(everything.__all__, key=_like_lazily)
    )
    assert re.sub(r" at 0x\w+", "", lazily).split("\n")[:-1] == re.sub(r" at 0x\w+", "", at_once).split("\n")
    assert all(getattr(values, name) is not None for name in values.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'RAGAS'"):
        values.RAGAS  # noqa: B018 - reading the attribute is the test


def _like_lazily(name: str) -> tuple[bool, str]:
    return name == "version", name


@pytest.mark.long
def test_the_imports_of_a_metric_load_no_judge_and_no_results() -> None:
    program = (
        "from nemo_evaluator_sdk import Metric, MetricInput, MetricOutput, MetricOutputSpec, MetricResult\nimport sys"
    )
    environment = {"PYTHONPATH": str(RUNTIMES_DIR / "python" / "dialects" / "nemo" / "modules")}
    command = [sys.executable, "-c", f"{program}\nprint(*sys.modules)"]
    loaded = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    own = {name.partition(".")[2] for name in loaded if name.startswith("nemo_evaluator_sdk.")}
    assert "metrics.protocol" in own
    assert not own & {"metrics.llm_judge", "execution.evaluator", "values.results", "inference"}
    assert not {"asyncio", "jinja2", "httpx", "logging"} & set(loaded)
