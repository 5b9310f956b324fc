"""The summary of a run has statistics for the score and each metric, which do not depend on the order in which rows
end.
"""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from evaluator_host.platform.terminal.summary import Summary
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Note, Status
from evaluator_host.types.results import Latency
from tests.unit.test_warnings import SCORED


def summary(order: tuple[int, ...]) -> Summary:
    made = Summary()
    for row in order:
        exact, close = float(row == 1), 0.1 * row
        made.add(replace(SCORED, score=None, metrics={"exact": exact, "close": close}), row=row, line=row + 1)
    return made


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_each_metric_has_its_statistics_though_there_is_no_score(order: tuple[int, ...]) -> None:
    found = summary(order).to_json(bad_lines=0, seconds=1)
    assert (found["mean"], found["min"], found["max"]) == (None, None, None)
    assert found["metrics"] == {
        "exact": {"rows": 4, "mean": 0.25, "std_error": 0.25, "min": 0.0, "max": 1.0},
        "close": {
            "rows": 4,
            "mean": (0.1 + 0.2 + 0.1 * 3) / 4,
            "std_error": pytest.approx(0.0645497),
            "min": 0.0,
            "max": 0.1 * 3,
        },
    }


def test_skipped_rows_have_metrics_but_no_time() -> None:
    made = summary((0, 1))
    made.add(replace(SCORED, status=Status.SKIPPED, score=None, metrics={"close": 0.5}), row=2, line=3)
    found = made.to_json(bad_lines=0, seconds=1)
    assert (found["skipped"], found["metrics"]["close"]["rows"]) == (1, 3)
    skipped = Summary()
    skipped.add(replace(SCORED, status=Status.SKIPPED, score=None, metrics={}), row=0, line=1)
    assert skipped.to_json(bad_lines=0, seconds=1)["run_ms"] is None
    assert "a row ran" not in shown(skipped)
    instant = Summary()
    instant.add(replace(SCORED, timing_ms=replace(SCORED.timing_ms, run=0.0)), row=0, line=1)
    assert "0.0 ms (p50), 0.0 ms (p99)" in shown(instant)


def test_only_rows_whose_code_ran_have_a_time() -> None:
    made = Summary()
    times = ((Status.SCORED, 3.0), (Status.SKIPPED, 2.0), (Status.FAILED, 1.0), (Status.FAILED, 0.0))
    for row, (status, run_ms) in enumerate(times):
        timing = replace(SCORED.timing_ms, run=run_ms)
        made.add(replace(SCORED, status=status, score=None, metrics={}, timing_ms=timing), row=row, line=row + 1)
    assert made.to_json(bad_lines=0, seconds=1)["run_ms"] == Latency(p50=2.0, p90=3.0, p99=3.0)


def shown(made: Summary) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(made.to_table(bad_lines=0, seconds=1))
    return text.getvalue()


def test_metrics_are_shown_and_the_score_only_once() -> None:
    assert "exact: mean 0.25 (standard error 0.25), min 0, max 1" in shown(summary((0, 1, 2, 3)))
    made = Summary()
    made.add(replace(SCORED, score=0.5, metrics={"score": 0.5, "length": 3}), row=0, line=1)
    assert "length: mean 3, min 3, max 3" in shown(made)
    assert "score: " not in shown(made)


def test_a_run_of_many_metrics_stays_small() -> None:
    made = Summary()
    made.add(replace(SCORED, metrics={f"m{n}": n for n in range(500)}), row=0, line=1)
    found = made.to_json(bad_lines=0, seconds=1)
    assert (len(found["metrics"]), found["more_metrics"]) == (200, True)
    assert "and 180 more, which --json prints; only the first 200 metrics are counted" in shown(made)


def test_rows_are_numbered_from_0_with_their_line_beside() -> None:
    made = Summary()
    fault = EvaluationError(ErrorCode.SYNTAX_ERROR, "no", line=3, column=7)
    for row, result in enumerate((replace(SCORED, passed=False), SCORED, replace(SCORED, passed=False))):
        made.add(replace(result, warnings=(Note("coerced", "it was text"),)), row=row, line=row + 2)
    made.add(replace(SCORED, error=fault), row=3, line=5)
    text = shown(made)
    assert "2: lines 2, 4 (rows 0, 2, counted from 0); --out FILE" in text
    assert "row 3 (line 5): syntax_error: no (line 3, column 7 of the evaluator)" in text
    found = made.to_json(bad_lines=0, seconds=1)
    assert (found["first_failure"]["row"], found["first_failure"]["line"]) == (3, 5)
    assert found["warnings"][0].rows == (0, 1, 2)


def test_failed_rows_count_as_0_if_other_rows_have_scores() -> None:
    failed = replace(
        SCORED, status=Status.FAILED, score=None, metrics={}, error=EvaluationError(ErrorCode.TIMEOUT, "x")
    )
    made = Summary(failures_are_zero=True)
    made.add(failed, row=0, line=1)
    found = made.to_json(bad_lines=0, seconds=1)
    assert (found["mean"], found["mean_rows"], found["min"], found["pass_rate"], found["judged"]) == (
        None,
        0,
        None,
        None,
        0,
    )
    for row, passed in ((1, True), (2, None), (3, None)):
        made.add(replace(SCORED, score=0.8, metrics={"score": 0.8}, passed=passed), row=row, line=row + 1)
    found = made.to_json(bad_lines=0, seconds=1)
    assert (found["mean"], found["mean_rows"], found["min"], found["max"]) == (pytest.approx(0.6), 4, 0.0, 0.8)
    assert (found["std_error"], found["pass_rate"], found["judged"]) == (pytest.approx(0.2), 0.5, 2)
    assert "over 4 rows: failed rows count as 0" in str(made.to_table(bad_lines=0, seconds=1))
