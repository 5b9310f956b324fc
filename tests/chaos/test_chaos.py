"""The plan of a chaos run depends only on its seed, and a run of 15 seconds finds nothing wrong."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.oracle import EXCUSES, Oracle
from tests.chaos.plan import TRAITS, Kind, Options, make_plan
from tests.chaos.programs import STEADY
from tests.chaos.run import Run, run_chaos

OPTIONS = [
    Options(600, database=database, backend=backend, root=root, workers=workers)
    for database in ("sqlite", "postgresql")
    for backend, workers in (("bubblewrap", 1), ("bubblewrap", 2), ("docker", 1))
    for root in (True, False)
]
RESULT = {
    "status": "scored",
    "score": 1.0,
    "passed": None,
    "label": None,
    "metrics": {},
    "value": 1,
    "warnings": [],
    "error": None,
    "logs": {"stdout": ""},
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_seed_plans_the_same_faults_each_time(options: Options) -> None:
    plan = make_plan(7, options)
    assert plan == make_plan(7, options)
    assert plan != make_plan(8, options)
    assert {fault.kind for fault in plan} == {kind for kind in Kind if TRAITS[kind].needs <= options.granted}
    assert all(fault.at_s > 0 and fault.at_s + fault.seconds <= options.seconds for fault in plan)
    for lane in {fault.lane for fault in plan}:
        mine = [fault for fault in plan if fault.lane == lane]
        assert all(one.at_s + one.seconds <= later.at_s for one, later in itertools.pairwise(mine))


@pytest.mark.long
def test_the_command_prints_the_plan_of_a_seed_and_that_of_a_report(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.chaos", "--plan"]
    printed = subprocess.run([*command, "--seed", "7", "--minutes", "1"], capture_output=True, text=True, check=True)
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"run": {"seed": 7, "minutes": 1.0}}))
    again = subprocess.run([*command, "--replay", report], capture_output=True, text=True, check=True)
    assert printed.stdout == again.stdout
    assert printed.stdout.count("\n") > 20


def test_the_oracle_finds_what_no_fault_explains() -> None:
    assert set(EXCUSES) == set(Kind)
    oracle, (program, *_) = Oracle(), STEADY
    oracle.learn(program, [RESULT] * 32)
    assert oracle.judge_result("row", program, 0, RESULT)
    assert not oracle.judge_result("row", program, 0, {**RESULT, "score": 0.5})
    oracle.judge_refusal(
        "call", 500, {"content-type": "application/problem+json"}, {"code": "internal", "detail": ""}, 0
    )
    oracle.judge_refusal("call", 503, {"content-type": "text/plain"}, "no", 0)
    job = {"id": "j", "status": "completed", "evaluators": ["one"], "progress": {"done": 2}}
    lines = [{"index": 0, "evaluator": "one", "result": RESULT}] * 2
    oracle.judge_job(job, [program], 2, lines)
    found = " ".join(oracle.findings)
    for word in ("expected", "500 internal", "no problem+json", "have no result", "several results"):
        assert word in found


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_quarter_of_a_minute_of_faults(tmp_path: Path) -> None:
    # this seed has many kinds of faults even in so short a run
    report = run_chaos(Run(minutes=0.25, seed=59), keep=tmp_path)
    assert report["findings"] == [], report["findings"]
    assert report["faults"]["kill host"], "the run must kill a host"
    assert report["counts"]["rows right"], "the run must judge rows"
