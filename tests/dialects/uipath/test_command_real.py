"""UiPath's own command line accepts every file in a project that our commands wrote, and gives the same scores.

Release 2.7.0 runs offline, from a package set that is installed once per machine. Its `register` needs a pydantic older
than 2.14.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, Language
from evaluator_host.vendors.uipath.project import find_layout
from evaluator_host.vendors.uipath.registering import register, usable_classes
from evaluator_host.vendors.uipath.template import evaluator_code
from tests import forked
from tests.conftest import DATA_DIR, ON_BUBBLEWRAP
from tests.dialects.uipath.projects import PATTERNS, make_project, make_shared
from tests.real_sets import UIPATH

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("this runs UiPath's own packages; test_eval.py tests our command"),
    ON_BUBBLEWRAP,
    pytest.mark.timeout(900),
]

START: Final = "import sys; sys.path.append(sys.argv.pop(1)); from uipath._cli import cli; cli()"
TONE: Final = {
    "evaluations": [{**PATTERNS["evaluations"][0], "evaluationCriterias": {"ToneEvaluator": {"expectedText": "rome"}}}]
}


@pytest.fixture
async def packages(service: Service) -> Path:
    known = await service.environments.require(UIPATH, Language.PYTHON)
    assert known.environment.path is not None
    return known.environment.path


def uipath(packages: Path, project: Path, *arguments: str) -> str:
    """Run UiPath's command line without network access, and return the output."""
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", sys.executable, "-S", "-c", START, str(packages), *arguments],
        cwd=project, capture_output=True, text=True, timeout=200,
        env={**os.environ, "UIPATH_TELEMETRY_ENABLED": "false"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def ours(project: Path, *arguments: str) -> dict[str, Any]:
    command = ["uipath", "eval", *arguments, "--json", "--data-dir", str(DATA_DIR)]
    done = forked.run(command, cwd=project, timeout=200)
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def files(project: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (project / "evaluations" / "evaluators").rglob("*.json")}


async def test_it_registers_what_add_made_and_writes_the_same_files(
    service: Service, packages: Path, tmp_path: Path
) -> None:
    project = make_project(tmp_path, "evaluations")
    layout = find_layout(project)
    code = layout.custom / "tone.py"
    code.write_text(evaluator_code("tone"))
    report = await service.check(Evaluator(evaluator_code("tone"), contract=Contract("uipath")))
    (made,) = register(layout, code, usable_classes(report, code), reset=False)
    written = files(project)
    made.file.unlink()
    made.types.unlink()

    uipath(packages, project, "register", "evaluator", "tone.py")
    assert files(project) == written
    (layout.folder / "eval_sets" / "tone.json").write_text(
        json.dumps({"version": "1.0", "id": "tone", "name": "Tone", "evaluatorRefs": ["ToneEvaluator"], **TONE})
    )
    uipath(
        packages, project, "eval", "main", "evaluations/eval_sets/tone.json", "--no-report", "--output-file", "out.json"
    )
    (result,) = json.loads((project / "out.json").read_text())["evaluationSetResults"]
    assert [one["result"]["score"] for one in result["evaluationRunResults"]] == [1.0]


async def test_it_scores_the_same_and_its_traces_are_taken(service: Service, packages: Path, tmp_path: Path) -> None:
    project = make_project(tmp_path, "evaluations")
    asked = ("eval", "main", "evaluations/eval_sets/patterns.json", "--no-report")
    uipath(packages, project, *asked, "--output-file", "out.json", "--trace-file", "traces.jsonl")
    theirs = json.loads((project / "out.json").read_text())["evaluationSetResults"]
    mine = ours(project, "patterns")
    for item, real in list(zip(mine["items"], theirs, strict=True))[:2]:
        found = {name: result["raw"] for name, result in item["results"].items()}
        assert found == {one["evaluatorId"]: one["result"]["score"] for one in real["evaluationRunResults"]}
    again = ours(project, "patterns", "--executions", "traces.jsonl")
    scores = [item["results"]["PatternComparisonEvaluator"]["score"] for item in again["items"]]
    assert scores[:2] == [0.5, 1.0]
    assert "no output was recorded for test-1, test-2, test-3" in again["notes"][0]


async def test_evaluators_import_the_projects_modules_as_there(
    service: Service, packages: Path, tmp_path: Path
) -> None:
    make_shared(tmp_path, "evaluations")
    uipath(packages, tmp_path, "register", "evaluator", "shared.py")
    uipath(packages, tmp_path, "eval", "main", "evaluations/eval_sets/shared.json", "--no-report", "--output-file", "o")
    theirs = json.loads((tmp_path / "o").read_text())["evaluationSetResults"]
    scores = [result["evaluationRunResults"][0]["result"]["score"] for result in theirs]
    mine = [item["results"]["SharedEvaluator"]["raw"] for item in ours(tmp_path, "shared")["items"]]
    assert mine == scores == [1.0, 0.5]


async def test_its_own_evaluators_run_where_the_package_is_pinned(service: Service, tmp_path: Path) -> None:
    project = make_project(tmp_path, "evaluations")
    config = {
        "id": "EM",
        "evaluatorTypeId": "uipath-exact-match",
        "evaluatorConfig": {"name": "EM", "targetOutputKey": "*"},
    }
    (project / "evaluations" / "evaluators" / "em.json").write_text(json.dumps(config))
    item = {**PATTERNS["evaluations"][0], "evaluationCriterias": {"EM": {"expectedOutput": {"answer": "Hello Rome"}}}}
    (project / "em.json").write_text(json.dumps({"evaluations": [item]}))
    pins = [f"--package={pin}" for pin in UIPATH]
    told = ours(project, "em.json", *pins)
    assert told["score"] == 1.0, told
