"""The projects in `examples/`: each command in a README runs in a copy of the project's folder, against a real host."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.conftest import DATA_DIR
from tests.docs.blocks import ROOT, Block, blocks
from tests.server import Server, index_environment, new_home

EXAMPLES = ROOT / "examples"
SECRET = "a-long-shared-secret"
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("host")
    options = json.dumps({"langfuse": {"secret": SECRET}})
    environment = {"EVALUATOR_HOST_WIRES": "langfuse", "EVALUATOR_HOST_WIRE_OPTIONS": options}
    with Server(log=home / "log", data_dir=new_home(home), environment=environment) as running:
        yield running


def run(block: Block, server: Server, folder: Path) -> str:
    """Run a block in a shell that finds the host's program and this Python first on the PATH."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "EVALUATOR_HOST_URL": server.url,
        "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR),
        **index_environment(),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, f"{block.text}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/README.md")))
def test_each_command_of_an_example_runs_and_prints_what_it_says(name: str, server: Server, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    found = blocks(folder / "README.md")
    ran = [block for block in found if block.language == "bash"]
    assert ran
    for block, following in pairwise([*found, Block("", "", 0)]):
        if block.language == "bash":
            printed = run(block, server, folder)
            if following.language == "text":
                assert printed == following.text


def test_the_table_has_each_example() -> None:
    table = (EXAMPLES / "README.md").read_text()
    assert set(re.findall(r"\]\((\S+)/README\.md\)", table)) == {
        path.parent.name for path in EXAMPLES.glob("*/README.md")
    }


def test_the_jobs_of_both_systems_are_given_what_the_script_takes() -> None:
    workflow = yaml.safe_load((EXAMPLES / "ci/.github/workflows/evaluate.yml").read_text())
    (given,) = [step["with"] for step in workflow["jobs"]["evaluate"]["steps"] if "deploy/ci" in step["uses"]]
    assert set(given) <= set(yaml.safe_load((ROOT / "deploy/ci/action.yml").read_text())["inputs"])
    job = yaml.safe_load((EXAMPLES / "ci/.gitlab-ci.yml").read_text())["exact"]
    template = (ROOT / "deploy/ci/gitlab.yml").read_text()
    assert [name for name in job["variables"] if f"${name}" not in template and f"${{{name}" not in template] == []
    assert {name.lower().replace("_", "-") for name in job["variables"]} == set(given)


def gate(folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the GitHub action's script on the example in `folder`; `given` are further environment variables."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR),
        "EVALUATOR": "evals/exact.py",
        "DATA": "evals/answers.csv",
        "MAP": "outputs=answer",
        **given,
    }
    script = ["sh", str(ROOT / "deploy/ci/evaluate.sh")]
    return subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.long
@pytest.mark.parametrize(("fail_under", "code"), [("0.6", 0), ("0.9", 1)])
def test_the_script_of_the_action_fails_under_the_mean(fail_under: str, code: int, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "ci", tmp_path / "ci")
    done = gate(tmp_path / "ci", FAIL_UNDER=fail_under)
    assert done.returncode == code, done.stdout + done.stderr
    assert (tmp_path / "ci/evaluator-results/junit.xml").is_file()


@pytest.mark.long
def test_a_gate_with_a_baseline_that_does_not_exist_fails(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "ci", tmp_path / "ci")
    lacking = gate(tmp_path / "ci", BASELINE="evals/baes.jsonl", MAX_DROP="0.02")
    assert lacking.returncode == 2
    assert "BASELINE: the file evals/baes.jsonl does not exist" in lacking.stderr
    first = gate(tmp_path / "ci", BASELINE="", MAX_DROP="0.02")
    assert first.returncode == 0, first.stderr
    assert "MAX_DROP is not checked, because BASELINE is empty" in first.stderr
