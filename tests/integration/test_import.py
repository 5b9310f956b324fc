"""Imports configurations as users do, on the command line and on a host, and runs a job over the imported rows."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest, NameTaken
from tests import forked
from tests.server import Server, index_environment

CONFIG = """
description: Capitals
prompts: [file://prompt.txt]
providers: [openai:gpt-5]
derivedMetrics: [{name: f1, value: 2 * a / b}]
defaultTest:
  assert:
    - {type: javascript, value: output.length < 50, metric: short}
tests:
  - vars: {country: France, said: Paris, expected: Paris}
    assert:
      - {type: equals, value: "{{expected}}"}
      - {type: llm-rubric, value: be nice}
  - vars: {country: [Norway, Sweden], said: Oslo}
    assert:
      - {type: not-icontains, value: stock}
      - {type: python, value: "file://checks/words.py:check", threshold: 0.5}
  - file://more.csv
"""
FILES = {
    "evals/promptfooconfig.yaml": CONFIG,
    "evals/checks/words.py": "from evals.checks.split import words\n\ndef check(output, context):\n    return len(words(output)) / 2\n",
    "evals/checks/split.py": "def words(text):\n    return text.split()\n",
    "evals/more.csv": "country,said,__expected\nItaly,Milan,contains: Rome\n",
}
EVALUATORS = ["evals-equals", "evals-short", "evals-not-icontains", "evals-words", "evals-contains"]
SCORERS = """
import missing_library

LIMIT = 10

def _norm(text):
    return text.strip().lower()

def same(inputs, outputs, trace):
    return float(_norm(outputs) == _norm(inputs["correct_answer"]))

def short(outputs, reference_outputs):
    return len(outputs["output"]) < LIMIT

def near(inputs, outputs, trace):
    return missing_library.score(outputs)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in {**FILES, "pyproject.toml": "", "scorers.py": SCORERS, "evals/.env": "no"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def run(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **(environment or {}),
        "EVALUATOR_HOST_DATA_DIR": str(folder / "data"),
        "EVALUATOR_HOST_SANDBOX": "bubblewrap",
    }
    environment["EVALUATOR_HOST_DATABASE_URL"] = f"sqlite:///{folder}/host.db"
    ran = forked.run(["import", *arguments], cwd=folder, env=environment, timeout=100)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


@pytest.mark.long
def test_a_configuration_is_imported_into_the_data_directory_and_told_apart_from_a_second_time(project: Path) -> None:
    tried = json.loads(run(project, "evals/promptfooconfig.yaml", "--dry-run", "--json").stdout)
    assert [one["name"] for one in tried["evaluators"]] == EVALUATORS
    assert [one["version"] for one in tried["evaluators"]] == [None] * 5
    words = tried["evaluators"][3]["evaluator"]
    assert words["files"] == {"evals/checks/split.py": FILES["evals/checks/split.py"]}
    assert words["settings"]["entry"] == "check"
    reasons = {one["where"]: one["reason"] for one in tried["left_out"]}
    assert set(reasons) == {"prompts", "providers", "derivedMetrics", "tests[0].assert[1]"}
    assert all(reasons.values())
    first = run(project, "evals/promptfooconfig.yaml")
    assert first.returncode == 0
    assert [line.split()[0] for line in first.stdout.splitlines()[1:-1]] == [f"{name}@1" for name in EVALUATORS]
    assert first.stdout.splitlines()[-1].startswith("data set evals: 4 rows of tests, inputs country, said")
    again = run(project, "evals/promptfooconfig.yaml")
    assert again.returncode == 2
    assert "these names are taken: evals, evals-contains," in again.stderr
    assert run(project, "evals/promptfooconfig.yaml", "--replace").returncode == 0


@pytest.mark.long
def test_a_module_becomes_an_evaluator_for_each_entry_that_loads(project: Path) -> None:
    ran = run(project, "scorers.py", "--dry-run")
    assert [line.split()[:2] for line in ran.stdout.splitlines()[1:]] == [
        ["scorers-same", "evaluate"],
        ["scorers-short", "langsmith"],
    ]
    assert "not imported: near: scorers-near: No module named 'missing_library'" in ran.stderr


@pytest.mark.long
def test_packages_are_chosen_for_what_is_imported(project: Path) -> None:
    code = "import emoji\n\ndef evaluate(inputs, outputs, trace):\n    return emoji.emoji_count(outputs) + 1.0\n"
    (project / "counting.py").write_text(code)
    made = run(project, "counting.py", "--package", "auto", "--json", environment=index_environment())
    (one,) = json.loads(made.stdout)["evaluators"]
    assert [pin.partition("==")[0] for pin in one["evaluator"]["packages"]] == ["emoji"], made.stderr


@pytest.mark.long
def test_a_job_scores_what_was_imported_as_the_tests_say(server: Server, project: Path) -> None:
    made = run(project, "evals/promptfooconfig.yaml", "--url", f"http://127.0.0.1:{server.port}", "--name", "evals")
    assert made.returncode == 0, made.stderr
    with Client(f"http://127.0.0.1:{server.port}") as client:
        criteria = [row["criteria_by_evaluator"] for row in client.datasets.rows("evals")]
        assert {name for one in criteria for name in one} == {*EVALUATORS}, (
            "criteria of the judge, which was left out, must be left out too"
        )
        job = client.jobs.create(EVALUATORS, dataset="evals", mapping={"outputs": "inputs.said"})
        assert client.jobs.wait(job.id).status == "completed"
        rows = list(client.jobs.rows(job.id))
        assert len(rows) == 20
        assert {row.result["status"] for row in rows} == {"scored", "skipped"}
        scores = {
            (row.index, row.evaluator.partition("@")[0][6:]): row.result["score"]
            for row in rows
            if row.result["status"] == "scored"
        }
        assert scores == {
            (0, "equals"): 1.0, (0, "short"): 1.0,
            (1, "short"): 1.0, (1, "not-icontains"): 1.0, (1, "words"): 0.5,
            (2, "short"): 1.0, (2, "not-icontains"): 1.0, (2, "words"): 0.5,
            (3, "short"): 1.0, (3, "contains"): 0.0,
        }  # fmt: skip
        with pytest.raises(NameTaken):
            client.import_files(FILES, "evals/promptfooconfig.yaml")
        assert client.import_files(FILES, "evals/promptfooconfig.yaml", dry_run=True).datasets[0].rows == 4


def test_files_that_no_platform_exports_are_refused_with_a_hint(server: Server) -> None:
    with Client(f"http://127.0.0.1:{server.port}") as client:
        for text, message in (
            ('[{"a": 1}]', "upload plain rows"),
            ("{", "not valid JSON"),
        ):
            with pytest.raises(InvalidRequest, match=message):
                client.import_files({"rows.json": text}, "rows.json")
        with pytest.raises(InvalidRequest, match="not valid YAML"):
            client.import_files({"a.yaml": "a: !!python/object/apply:os.system [ls]"}, "a.yaml")
        bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefgh", "bcdefghi", strict=True)
        )
        with pytest.raises(InvalidRequest, match="values"):
            client.import_files({"a.yaml": bomb}, "a.yaml")
