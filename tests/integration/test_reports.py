"""`run` writes reports for CI systems; the GitHub action, GitLab template and pre-commit hook run as in these systems."""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluator_host.cli.develop import CaseOutcome, _junit
from evaluator_host.cli.report import ReportedRow, ReportFiles, RowsReport, SameRows, junit, markdown, read_report
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.outcome import Status
from tests import forked
from tests.conftest import DATA_DIR
from tests.docs.blocks import ROOT

CI = ROOT / "deploy" / "ci"
CODE = "def evaluate(inputs, outputs, trace):\n    return {'score': inputs['score'] * FACTOR, 'reason': 'said so'}\n"
ENVIRONMENT = {
    **os.environ,
    "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR),
    "EVALUATOR_HOST_SANDBOX": "bubblewrap",
}
engine = pytest.mark.engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "same.py").write_text(CODE.replace("FACTOR", "1"))
    (tmp_path / "half.py").write_text(CODE.replace("FACTOR", "0.5"))
    rows = [{"score": 1.0}, {"score": 0.5}, {"nothing": 0}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "good.jsonl").write_text('{"score": 1.0}\n{"score": 0.5}\n')
    return tmp_path


def cli(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run(arguments, cwd=folder, env=ENVIRONMENT, timeout=100)


def shell(folder: Path, script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "bin").mkdir(exist_ok=True)
    program = forked.make_program(folder / "bin")
    environment = {**ENVIRONMENT, **variables, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-c", script, "sh", *arguments],
        cwd=folder, env=environment, pass_fds=[program], capture_output=True, text=True, timeout=100,
    )  # fmt: skip


@engine
def test_a_run_writes_junit_and_markdown_with_the_change(folder: Path) -> None:
    first = cli(folder, "run", "same.py", "--data", "rows.jsonl", "--threshold", "0.6", "--out", "before.jsonl",
                "--junit", "junit.xml", "--markdown", "summary.md")  # fmt: skip
    assert first.returncode == 1, "a row must fail"
    suite = ET.parse(folder / "junit.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "1", "skipped": "0",
    }  # fmt: skip
    assert [[child.tag for child in case] for case in suite] == [[], ["failure"], ["error"]]
    assert suite[1][0].get("message") == "score 0.5. said so"
    assert "KeyError" not in str(suite[2][0].get("message"))
    assert str(suite[2][0].get("message")).startswith("user_exception: ")
    text = (folder / "summary.md").read_text()
    assert "| mean | 0.75 |" in text
    assert "| passed | 50.0% |" in text
    second = cli(folder, "run", "half.py", "--data", "good.jsonl", "--markdown", "summary.md", "--baseline",
                 "before.jsonl", "--max-drop", "0.3")  # fmt: skip
    assert second.returncode == 1, second.stderr
    assert "the mean is 0.375 lower than in before.jsonl\nrows are compared by position, " in second.stderr
    assert "\n0 rows better, 2 worse\nworse: row 0, " in second.stderr
    assert "--max-drop allows 0.3, so the exit code is 1" in second.stderr
    gated = cli(folder, "run", "half.py", "--data", "good.jsonl", "--baseline", "before.jsonl", "--max-drop", "0.3",
                "--fail-under", "0.6", "--junit", "junit.xml")  # fmt: skip
    suite = ET.parse(folder / "junit.xml").getroot()[0]
    assert (gated.returncode, suite.get("tests"), suite.get("failures")) == (1, "4", "2")
    assert [(case.get("name"), case[0].tag, case[0].get("message")) for case in suite[2:]] == [
        ("--fail-under", "failure", "the mean score 0.375 is under --fail-under 0.6"),
        ("--max-drop", "failure", "the mean is 0.375 lower than in before.jsonl; --max-drop allows 0.3"),
    ]
    replaced = cli(folder, "run", "half.py", "--data", "good.jsonl", "--baseline", "before.jsonl", "--max-drop", "0.3",
                   "--out", "before.jsonl")  # fmt: skip
    assert (replaced.returncode, replaced.stderr) == (second.returncode, second.stderr), (
        "the result must be the same if one file is both baseline and output"
    )
    same = cli(folder, "run", "same.py", "--data", "good.jsonl", "--baseline", "before.jsonl", "--json")
    assert "the mean is 0.375 higher than in before.jsonl" in same.stderr
    assert json.loads(same.stdout)["comparison"] == {
        "baseline": "before.jsonl", "paired_by": "position", "rows": 2, "only_before": 0, "only_after": 0, "before": 0.375, "after": 0.75,
        "difference": 0.375, "improved": 2, "regressed": 0, "regressions": [],
    }  # fmt: skip
    again = cli(folder, "run", "half.py", "--data", "good.jsonl", "--baseline", "before.jsonl")
    assert "the mean is the same as in before.jsonl" in again.stderr
    text = (folder / "summary.md").read_text().partition("### half.py")[2]
    assert "| mean | 0.375 | 0.75 | -0.375 |" in text
    assert "2 rows are worse than in the baseline" in text
    assert "\nRows are compared by position, because some have no `id`: " in text
    assert not (folder / "results.jsonl").exists()
    third = cli(folder, "run", "half.py", "--data", "good.jsonl", "--baseline", "before.jsonl", "--max-drop", "0.4")
    assert third.returncode == 0, third.stderr


@engine
def test_mistakes_are_reported_before_the_run(folder: Path) -> None:
    lonely = cli(folder, "run", "same.py", "--data", "good.jsonl", "--max-drop", "1")
    assert (lonely.returncode, "--max-drop needs --baseline" in lonely.stderr) == (2, True)
    missing = cli(folder, "run", "same.py", "--data", "good.jsonl", "--baseline", "none.jsonl")
    assert (missing.returncode, "cannot read none.jsonl" in missing.stderr) == (2, True)
    other = cli(folder, "run", "same.py", "--data", "good.jsonl", "--baseline", "rows.jsonl")
    assert (other.returncode, "line 1 of rows.jsonl is not a result" in other.stderr) == (2, True)


def row(index: int, score: float | None, message: str | None = None, *, status: Status = Status.SCORED) -> ReportedRow:
    return ReportedRow(index, index + 1, status, score, None, message, 0.001)


def judged(scores: list[float | None]) -> RowsReport:
    rows = (
        ReportedRow(
            index, index + 1, Status.FAILED if score is None else Status.SCORED, score, score and score > 0.5, None, 0.0
        )
        for index, score in enumerate(scores)
    )
    return RowsReport("a.py", tuple(rows))


def test_only_rows_with_a_score_in_both_are_compared() -> None:
    before = judged([0.9, 0.8, 1.0, 0.2, None])
    now = judged([0.6, 0.4, None, 0.1, 0.9])
    same = SameRows.of(now, before, "score")
    assert same.drop == pytest.approx((0.3 + 0.4 + 0.1) / 3)
    assert same.told(Path("b.jsonl")) == (
        "the mean is 0.2667 lower than in b.jsonl, over 3 rows with a score in both (1 only in this run, 1 only in that file)"
    )
    lines = markdown(now, before).splitlines()
    assert "| mean | 0.5 | 0.725 |  |" in lines
    assert "| mean, 3 rows with both | 0.3667 | 0.6333 | -0.2667 |" in lines
    assert "| passed, 3 rows with both | 33.3% | 66.7% | -33.3 points |" in lines
    nothing = SameRows.of(judged([None]), before, "score")
    assert nothing.drop is None
    assert nothing.told(Path("b.jsonl")).startswith("the mean is not compared: no row has a score both")


def test_markdown_says_how_many_rows_did_not_pass() -> None:
    lines = markdown(judged([1.0] * 1999 + [0.0])).splitlines()
    assert {"| not passed | 1 |", "| passed | 99.95% |", "| mean | 0.9995 |"} <= {*lines}
    assert "| not passed | 1 | 0 | +1 |" in markdown(judged([0.2]), judged([0.7])).splitlines()
    assert "not passed" not in markdown(judged([None]))


def test_rounding_errors_make_no_row_worse() -> None:
    before, now = judged([0.1 + 0.2, 0.7]), judged([0.3, 0.7])
    assert SameRows.of(now, before, "score").told(Path("b.jsonl")) == "the mean is the same as in b.jsonl"
    assert "worse than in the baseline" not in markdown(now, before)


def test_a_row_is_worse_by_the_rule_for_jobs() -> None:
    told = "1 row is worse than in the baseline:"
    assert told in markdown(judged([1e-10]), judged([2e-10]))
    assert told not in markdown(judged([3e9]), judged([3e9 + 0.5]))
    skipped, failed = (RowsReport("a.py", (row(0, None, status=one),)) for one in (Status.SKIPPED, Status.FAILED))
    assert told not in markdown(skipped, judged([1.0]))
    assert told in markdown(failed, judged([1.0]))


def test_a_limit_for_the_drop_fails_if_nothing_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, now = tmp_path / "before.jsonl", tmp_path / "now.jsonl"
    result = {"status": "scored", "score": 1.0, "passed": None, "error": None, "reason": None, "timing_ms": {"run": 1}}
    for file in (before, now):
        file.write_text(json.dumps({"index": 0, "line": 1, "id": file.name, "result": result}) + "\n")
    assert ReportFiles(baseline=before, max_drop=0.1).write(read_report(now, "a.py"), {}) == 1
    assert "--max-drop needs a row with a score in both runs, so the exit code is 1" in capsys.readouterr().err
    assert ReportFiles(baseline=before).write(read_report(now, "a.py"), {}) == 0
    assert ReportFiles(baseline=now, max_drop=0.1).write(read_report(now, "a.py"), {}) == 0
    assert "rows are compared by position" not in capsys.readouterr().err, "every row has an id"


def test_rows_with_ids_are_compared_wherever_they_lie() -> None:
    def named(scores: dict[str, float]) -> RowsReport:
        return RowsReport(
            "a.py", tuple(replace(row(at, one), id=name) for at, (name, one) in enumerate(scores.items()))
        )

    before, now = named({"a": 0.0, "b": 1.0, "c": 1.0}), named({"new": 0.5, "a": 0.0, "b": 1.0, "c": 0.9})
    same = SameRows.of(now, before, "score")
    assert (same.drop, same.only_now, same.only_before) == (pytest.approx(0.1 / 3), 1, 0)
    assert "1 row is worse than in the baseline:" in markdown(now, before)
    assert "by position" not in markdown(now, before)
    by_place = SameRows.of(now, judged([0.0, 1.0, 1.0]), "score")
    assert by_place.only_now == 1, "rows must be compared by their position, because some rows have no id"


def test_an_id_that_occurs_twice_changes_no_other_row() -> None:
    def named(*rows: tuple[str, float]) -> RowsReport:
        return RowsReport("a.py", tuple(replace(row(at, score), id=name) for at, (name, score) in enumerate(rows)))

    before = named(("a", 0.0), ("b", 1.0), ("b", 0.5), ("c", 1.0))
    moved = named(("c", 1.0), ("b", 1.0), ("b", 0.5), ("a", 0.0))
    assert SameRows.of(moved, before, "score").every
    assert "worse than in the baseline" not in markdown(moved, before)
    fewer = SameRows.of(named(("c", 0.8), ("b", 0.5), ("a", 0.0)), before, "score")
    assert [one.id for one in fewer.now.rows] == ["c", "a"], (
        "the row with the id b must not be compared, because the baseline has two rows with this id"
    )
    assert (fewer.only_now, fewer.only_before) == (1, 2)


def test_the_largest_drop_is_the_first_of_the_rows_that_are_worse() -> None:
    before = judged([0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 1.0])
    now = judged([None, 0.8, 0.8, 0.8, 0.8, 0.8, 0.0])
    rows = tuple(replace(one, id=f"q{one.index}") if one.index else one for one in now.rows)
    lines = markdown(RowsReport("a.py", rows), before).splitlines()
    first = lines.index("7 rows are worse than in the baseline, the worst 5:")
    assert lines[first + 2 : first + 6] == [
        "| row from 0 | id | before | now | reason |", "|---|---|---|---|---|", "| 6 | q6 | 1 | 0 |  |",
        "| 1 | q1 | 0.9 | 0.8 |  |",
    ]  # fmt: skip


def test_a_list_that_was_cut_says_so() -> None:
    before, now = judged([0.9] * 7), judged([0.6] * 7)
    lines = markdown(now, before).splitlines()
    assert "7 rows are worse than in the baseline, the worst 5:" in lines
    assert "| passed | 100.0% | 100.0% | +0.0 points |" in lines
    assert "7 rows failed, the first 5:" in markdown(judged([None] * 7))
    assert "1 row is worse than in the baseline:" in markdown(judged([0.6]), judged([0.9]))


def test_a_report_names_rows_that_lost_their_pass_at_the_same_score() -> None:
    before = judged([0.9, 0.9, 0.9])
    now = RowsReport("a.py", tuple(replace(one, passed=one.index == 1) for one in before.rows))
    lines = markdown(now, before).splitlines()
    first = lines.index("2 rows passed only in the baseline, and the score did not fall:")
    assert [line.split(" | ")[0] for line in lines[first + 4 : first + 6]] == ["| 0", "| 2"]
    assert not any("passed only" in line for line in markdown(before, now).splitlines())


def test_text_from_code_is_not_markup() -> None:
    hostile = "</testcase> | [x](javascript:1) <script>\n# head \x00\ud800 \x1b]0;a\x07 \u202e `a`"
    report = RowsReport("a|b\x1b\udcff.py", (row(0, 0.0, hostile), row(1, None, hostile, status=Status.FAILED)))
    suite = ET.fromstring(junit(RowsReport("a\x1b\udcff", (row(1, None, hostile, status=Status.FAILED),))))[0]
    assert "</testcase>" in str(suite[0][0].get("message"))
    lines = markdown(report).splitlines()
    assert lines[0] == "### a\\|b\\\\x1b?.py"
    assert not any(sign in line for line in lines for sign in "\x00\x07\x1b\u202e\ud800")
    assert all("<script>" not in line and "[x]" not in line for line in lines)
    assert len([line for line in lines if line.startswith("| 0 |")]) == 1


def test_text_from_code_mentions_nobody() -> None:
    report = RowsReport("a@team.py", (row(0, 0.0, "ask @team or @_team about #12, !7 and a @ b"),))
    text = markdown(report)
    assert re.findall(r"[@#!]\\?\w", text) == []
    assert text.replace("\u200b", "").splitlines()[0] == "### a@team.py"
    assert "a @ b |" in text


def test_a_report_of_test_cases_is_xml_whatever_they_are_called() -> None:
    hostile = "<a> & \x00\x1b[31m \uffff \ud800"
    case = ET.fromstring(_junit([CaseOutcome("a\x07.py", hostile, f"label {hostile}, not good")]))[0]
    assert (case.get("classname"), str(case.get("name"))[:7]) == ("a .py", "<a> &  ")
    assert "not good" in str(case[0].get("message"))


def test_results_of_another_program_are_refused_by_their_line(tmp_path: Path) -> None:
    result = {"status": "scored", "score": 1, "passed": None, "reason": None, "error": None, "timing_ms": {"run": 1}}
    good = {"index": 0, "line": 1, "result": result}
    (file := tmp_path / "rows.jsonl").write_text(json.dumps(good) + "\n")
    assert read_report(file, "a").mean == 1
    wrong: list[Any] = [{**good, "index": "x"}, {**good, "id": [1]}, [], 5]
    wrong += [
        {**good, "result": {**result, **one}} for one in ({"score": "x"}, {"score": 10**400}, {"status": "great"})
    ]
    for line in wrong:
        file.write_text(f"{json.dumps(good)}\n{json.dumps(line)}\n")
        with pytest.raises(InvalidRequest, match=r"line 2 of .*rows\.jsonl is not a result"):
            read_report(file, "a")


@pytest.mark.long
@engine
def test_the_github_action(folder: Path) -> None:
    steps = yaml.safe_load((CI / "action.yml").read_text())
    inputs = {"evaluator": "same.py", "data": "good.jsonl", "fail-under": "0.7"}
    given = {name: inputs.get(name, str(one.get("default", ""))) for name, one in steps["inputs"].items()}

    def variables(step: dict[str, Any]) -> dict[str, str]:
        named = {name: value.removeprefix("${{ inputs.").removesuffix(" }}") for name, value in step["env"].items()}
        return {name: given[one] for name, one in named.items()}

    for step in steps["runs"]["steps"]:
        summary = str(folder / "step-summary.md")
        ended = shell(folder, step["run"], GITHUB_ACTION_PATH=str(CI), GITHUB_STEP_SUMMARY=summary, **variables(step))
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "| mean | 0.75 |" in (folder / "step-summary.md").read_text()
    assert (folder / "evaluator-results/junit.xml").exists()
    given |= {"fail-under": "0.9", "baseline": "evaluator-results/results.jsonl"}
    shutil.copy(folder / "evaluator-results/results.jsonl", folder / "before.jsonl")
    again = shell(
        folder, steps["runs"]["steps"][1]["run"], GITHUB_ACTION_PATH=str(CI), **variables(steps["runs"]["steps"][1])
    )
    assert again.returncode == 1


@pytest.mark.long
@engine
def test_the_gitlab_template(folder: Path) -> None:
    job = yaml.safe_load((CI / "gitlab.yml").read_text())[".evaluate"]
    variables = {**job["variables"], "EVALUATOR": "same.py", "DATA": "good.jsonl", "FAIL_UNDER": "0.7"}
    script = "\n".join(["set -e", *job["before_script"], *job["script"]])
    ended = shell(folder, script, **variables)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (folder / "evaluator-results/junit.xml").exists()
    assert shell(folder, script, **{**variables, "FAIL_UNDER": "0.9"}).returncode == 1
    first = shell(folder, script, **variables, BASELINE="", MAX_DROP="0.02")
    assert (first.returncode, "MAX_DROP is not checked" in first.stderr) == (0, True), first.stderr
    lacking = shell(folder, script, **variables, BASELINE="baes.jsonl", MAX_DROP="0.02")
    assert (lacking.returncode, "baes.jsonl" in lacking.stderr) == (2, True), lacking.stderr


@pytest.mark.long
@engine
def test_the_pre_commit_hook(folder: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (folder / "broken.py").write_text("def evaluate(inputs, outputs, trace: return")
    good = shell(folder, f'{hook["entry"]} "$@"', "same.py", "half.py")
    assert good.returncode == 0, good.stderr
    bad = shell(folder, f'{hook["entry"]} "$@"', "broken.py", "same.py")
    assert bad.returncode == 1, bad.stdout
