"""Evaluators of other platforms get the same scores here as in the platforms' own packages, except for documented
differences.

The programs are the Python cases in `tests/dialects/<platform>/cases.py` that have the platform's own row and no pins.
The platforms' packages are installed once per machine, from `programs/<platform>.txt`.
"""

import asyncio
import json
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Language
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.cases import NativeCase
from tests.differential.compare import differences, unexplained
from tests.differential.packages import PROGRAMS, real_python
from tests.wires.real_clients import CLIENTS

pytestmark = [
    pytest.mark.differential,
    pytest.mark.timeout(600),
    ON_BUBBLEWRAP,
]

FIELDS: Final = {
    "langsmith": ("key", "score", "value", "comment"),
    "braintrust": ("name", "score"),
    "opik": ("name", "value", "reason", "category_name"),
    "phoenix": ("name", "score", "label", "explanation"),
    "deepeval": ("score", "success", "reason"),
    "mlflow": ("name", "value", "rationale"),
    "weave": ("result", "summary"),
    "ragas": ("name", "value", "reason"),
}
"""The fields of each score that are compared."""
NEEDS: Final = {
    "langsmith": "def judge(",
    "phoenix": "phoenix.evals",
    "opik": "BaseMetric",
    "deepeval": "BaseMetric",
    "braintrust": "handler",
    "mlflow": "mlflow.genai",
    "weave": "weave",
    "ragas": "ragas",
}
"""Text that occurs in programs that the package itself can run. Other programs run only on the platform's server."""
ASKS_SERVER: Final = "Eval("  # Braintrust's `Eval` logs in to a server, so programs that call it are left out
ROWS: Final = {
    "langsmith": "run",
    "phoenix": "output",
    "opik": "data",
    "deepeval": "test_case",
    "braintrust": "output",
    "mlflow": "outputs",
    "weave": "output",
    "ragas": "response",
}
PINS: Final = {"mlflow": CLIENTS / "mlflow.txt"}  # the tests of the wire use the same environment
UNPINNED: Final = "contracts.md#packages-that-are-not-pinned"
EXPLAINED: Final[dict[str, dict[str, str]]] = {
    "langsmith": {},
    "braintrust": {
        "NaN: .*": "dialects/braintrust.md#different-from-braintrust",
        "two scores of the same name: scores": "dialects/braintrust.md#different-from-braintrust",
        "no score: .*": "dialects/braintrust.md#different-from-braintrust",
    },
    "opik": {
        # this differs because the dialect follows Opik's server, not its SDK
        "missing parameters are None, .*: .*": "dialects/opik.md#the-metric",
        "a required argument called name gets the class's name: .*": "dialects/opik.md#the-metric",
        "an object that the code makes: .*": "dialects/opik.md#the-metric",
    },
    "phoenix": {
        "awaited: .*": "coming-from.md#what-holds-for-all-of-them",
        "a score that is a list: .*": "contracts.md#what-a-returned-value-becomes",
        "an unused name of the package: .*": UNPINNED,
        "another distribution of the name, unused: .*": UNPINNED,
    },
    "deepeval": {
        "no a_measure: .*": "dialects/deepeval.md#the-call",
    },
    "weave": {
        "output and columns as variables: .*": "dialects/weave.md#the-row",
        "an unused name of the package: .*": UNPINNED,
        "a snippet without imports: .*": "dialects/weave.md#weave-scorers",
        "a scorer that the code makes: .*": "dialects/weave.md#weave-scorers",
    },
    "ragas": {},
    "mlflow": {
        "async: .*": "dialects/mlflow.md#different-from-mlflow",
        "a snippet without imports: .*": "dialects/mlflow.md#mlflow-scorers",
    },
}


def programs(platform: str) -> dict[str, NativeCase]:
    """Return the cases that the real package can run."""
    found = {}
    for case in import_module(f"tests.dialects.{platform}.cases").CASES:
        plain = (
            case.settings.entry is None
            and not case.settings.config
            and (case.settings.score_output is None or case.error is None)
            and case.error not in ("load_error", "entry_ambiguous")
            and "several_entries" not in case.warnings
        )
        fits = case.language is Language.PYTHON and not case.packages and plain
        fits = fits and ASKS_SERVER not in case.code
        own = case.row.variables is not None and ROWS[platform] in case.row.variables
        if fits and own and NEEDS[platform] in case.code and case.recognised in (Contract(platform), None):
            found[case.id] = case
    return found


@pytest.mark.parametrize("platform", FIELDS)
async def test_programs_score_as_by_the_real_package(service: Service, platform: str, tmp_path: Path) -> None:
    cases = programs(platform)
    real = _real(platform, cases, tmp_path)
    results = await asyncio.gather(*(service.evaluate(case.evaluator, case.row) for case in cases.values()))
    fields = {}
    for (name, _), result in zip(cases.items(), results, strict=True):
        fields[name] = list(differences(_of_platform(platform, real[name]), _of_host(platform, result)))
    assert len(fields) >= 10
    left = unexplained(fields, EXPLAINED[platform])
    assert left == {}, json.dumps(
        {
            "left": left,
            "real": {one.split(":")[0]: real[one.split(":")[0]] for one in left if one.split(":")[0] in real},
        },
        indent=1,
    )


def _real(platform: str, cases: dict[str, NativeCase], folder: Path) -> dict[str, Any]:
    given, found = folder / "cases.json", folder / "found.json"
    given.write_text(
        json.dumps({name: {"code": one.evaluator.code, "variables": one.row.variables} for name, one in cases.items()})
    )
    command = [
        str(real_python(PINS.get(platform, PROGRAMS / f"{platform}.txt"))),
        "platform_real.py",
        platform,
        str(given),
        str(found),
    ]
    done = subprocess.run(command, cwd=PROGRAMS, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    made: dict[str, Any] = json.loads(found.read_text())
    return made


def _of_platform(platform: str, found: dict[str, Any]) -> dict[str, Any]:
    return {"failed": True} if "error" in found else {"scores": [_fields(platform, one) for one in found["native"]]}


def _of_host(platform: str, result: EvaluationResult) -> dict[str, Any]:
    if result.error is not None:
        return {"failed": True}
    return {"scores": [_fields(platform, one) for one in result.native]}


def _fields(platform: str, one: dict[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in FIELDS[platform] if one.get(name) is not None}
