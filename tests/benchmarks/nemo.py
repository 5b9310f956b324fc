"""Measures how long the host takes to import and run metrics written for NeMo Evaluator.

The time for many rows is compared with the time that NeMo's own local evaluator takes, and with the time of a fresh
process for each row.
"""

import os
import resource
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.preparer import sdk_needs
from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Row
from tests.dialects.nemo.metrics import IMPORTS, REAL

ROWS: Final = 10_000
LIGHT: Final = RUNTIMES_DIR / "python" / "dialects" / "nemo" / "modules"
METRIC: Final = f"""\
{IMPORTS}

class LengthMetric(Metric):
    type = "length"

    def output_spec(self):
        return [MetricOutputSpec.boolean("short_enough"), MetricOutputSpec.discrete_score("words")]

    async def compute_scores(self, metric_input):
        words = len(metric_input.candidate.output_text.split())
        outputs = {{"short_enough": words <= metric_input.row.data["most"], "words": words}}
        return MetricResult(outputs=[MetricOutput(name=name, value=value) for name, value in outputs.items()])
"""
_ONE_ROW: Final = (
    METRIC
    + """
import asyncio
from nemo_evaluator_sdk import CandidateOutput, DatasetRow
row = MetricInput(row=DatasetRow(data={"most": 3}), candidate=CandidateOutput(output_text="in the city of Paris"))
assert asyncio.run(LengthMetric().compute_scores(row)).outputs[1].value == 5
"""
)
_EVALUATION: Final = (
    METRIC
    + f"""
import time
from nemo_evaluator_sdk import Evaluator
rows = [{{"most": 3, "n": n, "output": "in the city of Paris"}} for n in range({ROWS})]
started = time.perf_counter()
result = Evaluator().run_sync(metrics=LengthMetric(), dataset=rows)
taken = time.perf_counter() - started
assert result.aggregate_scores.scores[1].sum == 5.0 * {ROWS}
print(taken)
"""
)


async def light_packages(service: Service) -> Path:
    """Return the folder with the packages that the host's small replacement of NeMo's SDK needs."""
    needs = sdk_needs(Evaluator(METRIC))
    assert needs is not None
    known = await service.environments.require_locked(needs.lock(service.environments.queries.target(Language.PYTHON)))
    assert known.environment.path is not None
    return known.environment.path


async def real_packages(service: Service) -> Path:
    """Return the folder with NeMo's own package."""
    known = await service.environments.require(REAL, Language.PYTHON)
    assert known.environment.path is not None
    return known.environment.path


def import_s(packages: Path, times: int = 7) -> tuple[float, float]:
    """Return how many seconds a process takes to import a metric's modules, if none of their files are in the page
    cache.

    Clock time and processor time are both the minimum of several runs, since other work on the machine only adds to
    them.
    """
    taken, worked = [], []
    for _ in range(times):
        for folder in (packages, LIGHT):
            _evict(folder)
        started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(IMPORTS, packages, LIGHT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(time.perf_counter() - started)
        worked.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken), min(worked)


def process_ms(packages: Path, times: int = 7) -> list[float]:
    """Return how many milliseconds a fresh process takes to score one row with the host's small replacement of NeMo's
    SDK, if the replacement's files are in the page cache.
    """
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        _run(_ONE_ROW, packages, LIGHT)
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def real_s(packages: Path) -> float:
    """Return the seconds that NeMo's own local evaluator takes for `ROWS` rows, without imports and start."""
    return float(_run(_EVALUATION, packages))


async def rows_s(service: Service, isolation: Isolation, count: int = ROWS) -> float:
    """Return how many seconds the service takes for `count` rows of one metric, after the metric was loaded."""
    evaluator = Evaluator(METRIC)
    rows = [Row({"most": 3, "n": n}, "in the city of Paris") for n in range(count)]
    first = await service.evaluate(evaluator, rows[0])
    assert first.error is None, first.error
    started, words = time.perf_counter(), 0.0
    async with aclosing(service.evaluate_rows(evaluator, rows, isolation=isolation)) as results:
        async for _, result in results:
            words += result.metrics["words"]
    assert words == 5.0 * count
    return time.perf_counter() - started


def _run(program: str, *packages: Path) -> str:
    environment: dict[str, Any] = {"PYTHONPATH": os.pathsep.join(map(str, packages)), "PATH": os.environ["PATH"]}
    # this runs the base interpreter, which does not see the packages of this environment
    command = [
        getattr(sys, "_base_executable", sys.executable),
        "-c",
        program,
    ]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600).stdout


def _evict(folder: Path) -> None:
    """Remove the files of a folder from the kernel's page cache."""
    for file in folder.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
