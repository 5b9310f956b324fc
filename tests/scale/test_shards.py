"""The merged statistics of `run --shard` equal those of one run, and `merge` names a missing shard."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluator_host.platform.datasets.rows import Shard
from evaluator_host.types.errors import InvalidRequest
from tests import forked
from tests.conftest import DATA_DIR
from tests.docs.blocks import ROOT

CODE = """
def evaluate(inputs, outputs, trace):
    assert outputs % 10 != 7, "a row that fails"
    return {"score": outputs / 7, "passed": outputs % 2 == 0}
"""
RECIPES = ROOT / "docs" / "recipes"
ENVIRONMENT = {**os.environ, "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}
MEASURED = {"rows_per_s", "run_ms"}

pytestmark = pytest.mark.engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "seventh.py").write_text(CODE)
    lines = [json.dumps({"output": n}) for n in range(60)]
    lines.insert(20, "no row")
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def cli(folder: Path, *arguments: str, code: int) -> str:
    ran = forked.run(arguments, cwd=folder, env=ENVIRONMENT, timeout=100)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout if code < 2 else ran.stderr


def run(folder: Path, out: str, *more: str) -> str:
    return cli(folder, "run", "seventh.py", "--data", "rows.jsonl", "--out", out, "--json", *more, code=1)


def statistics(printed: str) -> dict[str, Any]:
    found = json.loads(printed)
    found["first_failure"]["error"].pop("traceback", None)
    return {name: value for name, value in found.items() if name not in MEASURED}


def rows(path: Path) -> list[tuple[int, int, float | None]]:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return [(entry["index"], entry["line"], entry["result"]["score"]) for entry in entries]


def test_shards_merge_into_the_statistics_of_one_run(folder: Path) -> None:
    whole = run(folder, "whole.jsonl")
    for number in range(3):
        run(folder, f"part-{number}.jsonl", "--shard", f"{number}/3")
    parts = [f"part-{number}.jsonl" for number in (2, 0, 1)]
    merged = cli(folder, "merge", *parts, "--out", "merged.jsonl", "--json", code=1)
    assert statistics(merged) == statistics(whole)
    assert statistics(merged)["bad_lines"] == 1
    assert rows(folder / "merged.jsonl") == sorted(rows(folder / "whole.jsonl"))
    assert "rows/s" not in cli(folder, "merge", *parts, code=1)

    (folder / "seventh.py").write_text(CODE.replace("/ 7", "/ 8"))
    run(folder, "other.jsonl", "--shard", "2/3")
    told = cli(folder, "merge", *parts[1:], "other.jsonl", "--out", "mixed.jsonl", code=2)
    assert "part-0.jsonl and other.jsonl come from different evaluators" in told
    assert not (folder / "mixed.jsonl").exists()

    assert "1 of 3 shards are missing: 1/3" in cli(folder, "merge", *parts[:2], code=2)
    assert "are both shard 0/3" in cli(folder, "merge", *parts, "part-0.jsonl", code=2)
    assert "does not name a shard" in cli(folder, "merge", "whole.jsonl", code=2)
    lines = (folder / "part-1.jsonl").read_text().splitlines(keepends=True)
    (folder / "part-1.jsonl").write_text("".join(lines[:-1]))
    assert "run that shard again" in cli(folder, "merge", *parts, code=2)
    (folder / "part-1.jsonl").write_text("".join([*lines[:3], *lines[4:]]))
    assert "19 of 20 rows; run shard 1/3 again" in cli(folder, "merge", *parts, code=2)
    (folder / "part-1.jsonl").write_text("".join(lines)[:-30])
    assert "may be truncated" in cli(folder, "merge", *parts, code=2)
    assert "a second result" in (
        (folder / "part-1.jsonl").write_text("".join([lines[0], *lines])) and cli(folder, "merge", *parts, code=2)
    )


@pytest.mark.parametrize("text", ["3", "3/3", "-1/3", "1/0", "a/b", "1/2/3", ""])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a shard"):
        Shard.parse(text)


@pytest.fixture
def program(folder: Path) -> tuple[int, str]:
    """The descriptor that a forked program `evaluator-host` (`tests.forked`) must inherit, and a PATH on which the
    program is found.
    """
    (folder / "bin").mkdir()
    return forked.make_program(folder / "bin"), f"{folder / 'bin'}:{os.environ['PATH']}"


@pytest.mark.long
def test_the_slurm_script_runs_each_task_of_an_array(folder: Path, program: tuple[int, str]) -> None:
    shutil.copy(RECIPES / "slurm.sh", folder)
    for task in range(2):
        variables = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_CPUS_PER_TASK": "1"}
        subprocess.run(
            ["bash", "slurm.sh", "seventh.py", "rows.jsonl"],
            cwd=folder, env={**ENVIRONMENT, **variables, "PATH": program[1], "USER": "u"}, pass_fds=[program[0]],
            check=True, capture_output=True, timeout=100,
        )  # fmt: skip
    assert statistics(cli(folder, "merge", "part-0.jsonl", "part-1.jsonl", "--json", code=1))["rows"] == 60


@pytest.mark.long
def test_gnu_parallel_or_xargs_runs_the_shards(folder: Path, program: tuple[int, str]) -> None:
    runner = ["parallel", "-j2", "{}"] if shutil.which("parallel") else ["xargs", "-P2", "-I{}", "sh", "-c", "{}"]
    command = "evaluator-host run seventh.py --data rows.jsonl --shard {n}/2 --out part-{n}.jsonl --json || test $? = 1"
    subprocess.run(
        runner, input="\n".join(command.format(n=n) for n in range(2)), text=True, cwd=folder,
        env={**ENVIRONMENT, "PATH": program[1]}, pass_fds=[program[0]], check=True, capture_output=True, timeout=100,
    )  # fmt: skip
    assert statistics(cli(folder, "merge", "part-0.jsonl", "part-1.jsonl", "--json", code=1))["rows"] == 60


def test_the_manifest_is_one_that_kubernetes_takes() -> None:
    import kubernetes_validate  # noqa: PLC0415 - the import takes a second, and only this test needs it

    (manifest,) = yaml.safe_load_all((RECIPES / "kubernetes-job.yaml").read_text())
    kubernetes_validate.validate(manifest, "1.33", strict=True)
    spec, pod = manifest["spec"], manifest["spec"]["template"]["spec"]
    assert (manifest["apiVersion"], manifest["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert pod["restartPolicy"] == "Never", "backoffLimitPerIndex and podFailurePolicy need this policy"
    (container,) = pod["containers"]
    assert f"--shard $JOB_COMPLETION_INDEX/{spec['completions']}" in container["args"][0]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    subprocess.run(["sh", "-n", "-c", container["args"][0]], check=True)


RUN = ("run", "seventh.py", "--data", "rows.jsonl")
LIES = {
    "a list that has the names of the fields": lambda row, closing: [["index", "result"], closing],
    "an index that is a list": lambda row, closing: [{**row, "index": [1]}, closing],
    "an index that is not whole": lambda row, closing: [{**row, "index": 1.0}, closing],
    "an index of another shard": lambda row, closing: [{**row, "index": 2}, closing],
    "a shard that is a number": lambda row, closing: [row, {**closing, "shard": 1}],
    "bad lines that are text": lambda row, closing: [row, {**closing, "bad_lines": "few"}],
    "a result that is a number": lambda row, closing: [{**row, "result": 5}, closing],
    "an unknown status": lambda row, closing: [{**row, "result": {**row["result"], "status": "great"}}, closing],
    "a score that no float holds": lambda row, closing: [
        {**row, "result": {**row["result"], "score": 10**400}},
        closing,
    ],
}


@pytest.mark.long
def test_a_shard_that_lies_is_refused_by_name(folder: Path) -> None:
    (folder / "rows.jsonl").write_text('{"output": 1}\n{"output": 2}\n')
    for number in range(2):
        cli(folder, *RUN, "--out", f"{number}.jsonl", "--shard", f"{number}/2", code=0)
    row, closing = map(json.loads, (folder / "1.jsonl").read_text().splitlines())
    for name, lie in LIES.items():
        (folder / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lie(row, closing)))
        said = cli(folder, "merge", "0.jsonl", "1.jsonl", "--out", "merged.jsonl", code=2)
        assert "1.jsonl" in said, name
        assert not (folder / "merged.jsonl").exists(), name


@pytest.mark.long
def test_a_shard_that_claims_a_trillion_rows_takes_no_memory_for_them(folder: Path) -> None:
    cli(folder, *RUN, "--out", "0.jsonl", "--shard", "0/1", code=1)
    *lines, closing = (folder / "0.jsonl").read_text().splitlines()
    (folder / "0.jsonl").write_text("\n".join([*lines, closing.replace('"rows":60', '"rows":1000000000000')]) + "\n")
    assert "has only 60 of 1000000000000 rows" in cli(folder, "merge", "0.jsonl", code=2)
