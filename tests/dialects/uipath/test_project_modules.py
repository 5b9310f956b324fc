"""The command line registers an evaluator that imports the project's modules, runs it here and on a host, stores it,
and explains errors.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.client import Client
from tests import forked
from tests.conftest import DATA_DIR
from tests.dialects.uipath.projects import SHARED_SET, WORDING, make_shared, write

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]


def command(project: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = forked.run(arguments, cwd=project, timeout=200)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def local(project: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    return command(project, "uipath", *arguments, "--data-dir", str(DATA_DIR), code=code)


def raw(told: str) -> list[float]:
    items: list[dict[str, Any]] = json.loads(told)["items"]
    return [item["results"]["SharedEvaluator"]["raw"] for item in items]


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project with a registered evaluator, and the path of the evaluator in the project."""
    project = tmp_path_factory.mktemp("registered")
    made = make_shared(project)
    done = local(project, "register", "shared.py")
    assert done.stdout.startswith("SharedEvaluator: evals/evaluators/shared-evaluator.json")
    return project, made.relative_to(project)


@pytest.fixture
def file(registered: tuple[Path, Path], tmp_path: Path) -> Path:
    """The evaluator's file, in a copy of the project that only this test uses."""
    project, made = registered
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    return tmp_path / made


@pytest.mark.long
def test_it_scores_here_on_a_host_and_stored(file: Path, tmp_path: Path, url: str) -> None:
    assert raw(local(tmp_path, "eval", "shared", "--json").stdout) == [1.0, 0.5]
    assert raw(local(tmp_path, "eval", "shared", "--json", "--url", url).stdout) == [1.0, 0.5]

    stored = ("evaluators", "create", "SharedEvaluator", str(file), "--url", url)
    command(tmp_path, *stored)
    executions = [{"id": item["id"], "output": {"answer": "Hello Rome"}} for item in SHARED_SET["evaluations"]]
    with Client(url) as client:
        job = client.jobs.create([], {"eval_set": SHARED_SET, "executions": executions})
        client.jobs.wait(job.id)
        assert client.jobs.results(job.id).evaluators[0].metrics[0].mean == 0.75
        first = client.evaluators.get("SharedEvaluator")
        assert first.evaluator.code.startswith(file.read_text())
        command(tmp_path, "evaluators", "update", *stored[2:])
        assert client.evaluators.get("SharedEvaluator").version == 1, (
            "there must be no new version, because nothing has changed"
        )
        write(tmp_path / "scoring" / "shares.py", "def share(wanted, found):\n    return 1.0\n")
        command(tmp_path, "evaluators", "update", *stored[2:])
        assert client.evaluators.get("SharedEvaluator").version == 2, (
            "there must be a new version, because a module has changed"
        )


@pytest.mark.long
def test_a_module_beside_it_by_its_bare_name(file: Path, tmp_path: Path) -> None:
    file.write_text(file.read_text().replace("from evals.evaluators.custom.wording", "from wording"))
    assert raw(local(tmp_path, "eval", "shared", "--json").stdout) == [1.0, 0.5]
    told = json.loads(command(tmp_path, "check", str(file), "--data-dir", str(DATA_DIR), "--json").stdout)
    assert (told["ok"], told["missing_imports"], told["classes"][0]["line"]) == (True, [], 20)


@pytest.mark.long
def test_a_failure_in_a_module_names_its_file_and_line(file: Path, tmp_path: Path) -> None:
    write(file.parent / "wording.py", f"\n{WORDING.replace('text.lower()', 'text.nothing()')}")
    told = json.loads(local(tmp_path, "eval", "shared", "--json", code=1).stdout)
    error = told["items"][0]["results"]["SharedEvaluator"]["error"]
    assert error["line"] == 23
    assert 'File "evaluator.py", line 23, in evaluate' in error["traceback"]
    assert 'File "evals/evaluators/custom/wording.py", line 3, in words' in error["traceback"]


@pytest.mark.long
def test_a_module_that_is_missing_says_where_it_was_looked_for(file: Path, tmp_path: Path) -> None:
    (tmp_path / "models.py").unlink()
    hint = (
        f"neither Python nor a pinned package has models, and there is no module models.py and no package models/ in "
        f"{tmp_path} and in {file.parent}; put it there, or pin its package: --package NAME==VERSION"
    )
    said = local(tmp_path, "eval", "shared", code=1).stderr
    assert f"load_error: No module named 'models' (line 5); {hint}" in said
    said = local(tmp_path, "register", "shared.py", code=2).stderr
    assert "No module named 'models'" in said
    assert hint in " ".join(said.split())


def test_a_module_that_leads_out_of_the_project_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "models.py").unlink()
    (tmp_path / "models.py").symlink_to("/etc/passwd")
    for asked in (("eval", "shared"), ("register", file.name)):
        assert "models.py resolves through a link to" in local(tmp_path, *asked, code=2).stderr


@pytest.mark.long
def test_an_error_of_syntax_in_a_module_is_the_sandboxes(file: Path, tmp_path: Path) -> None:
    write(tmp_path / "scoring" / "shares.py", "def share(\n")
    said = local(tmp_path, "eval", "shared", code=1).stderr
    assert "load_error: '(' was never closed (shares.py, line 1) (line 7)" in said
