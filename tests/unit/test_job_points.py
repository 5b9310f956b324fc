"""The rows of two jobs become points of a plot, and a job's failures become groups, even if there are very many."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterable
from typing import Any

from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.results.aggregate import POINTS, Scatter
from evaluator_host.platform.jobs.results.failure_groups import GROUPS, failure_groups
from evaluator_host.platform.jobs.results.row_previews import row_preview
from evaluator_host.platform.jobs.results.row_reader import _Sought
from evaluator_host.types.results import FailureGroup, JobRow, Point


def paired(values: Iterable[tuple[float, float]]) -> Scatter:
    made = Scatter()
    for row, (before, after) in enumerate(values):
        made.add_pair(row, before, after)
    return made


def grouped(errors: Iterable[dict[str, object]]) -> list[FailureGroup]:
    async def stored() -> AsyncIterator[StoredResult]:
        for row, error in enumerate(errors):
            whole = {"code": "user_exception", "type": None, "line": None, **error}
            yield StoredResult(0, row, "failed", None, None, "user_exception", 1.0, "{}", json.dumps({"error": whole}))

    return asyncio.run(failure_groups("exact@1", stored()))


def test_rows_with_the_same_values_are_one_point() -> None:
    points, binned = paired([(0, 1), (1, 1), (0, 1), (math.nan, 1), (1, math.inf)]).points()
    assert points == (Point(0.0, 1.0, 2, 0), Point(1.0, 1.0, 1, 1))
    assert not binned


def test_no_rows_have_no_points() -> None:
    assert Scatter().points() == ((), False)


def test_many_different_values_are_put_together_and_none_is_lost() -> None:
    many = paired((n / 9000, (n * 7919 % 9001) / 9000) for n in range(9001))
    points, binned = many.points()
    assert binned
    assert 1000 < len(points) <= POINTS
    assert sum(point.count for point in points) == len(many) == 9001
    assert math.isclose(sum(point.after * point.count for point in points), sum(n / 9000 for n in range(9001)))


def test_values_at_the_ends_of_what_a_float_holds_have_points_too() -> None:
    points, binned = paired((1.7e308 * (-1) ** n, n) for n in range(5000)).points()
    assert binned
    assert {point.before for point in points} == {1.7e308, -1.7e308}
    assert sum(point.count for point in points) == 5000


def test_a_group_of_failures_says_what_to_do() -> None:
    errors = [{"message": "'gold'", "type": "KeyError", "hint": f"this row's inputs have: {n}"} for n in range(2)]
    assert [(one.count, one.hint) for one in grouped(errors)] == [(2, "this row's inputs have: 0")]


def test_failures_that_are_alike_but_for_numbers_are_one_group() -> None:
    errors = [{"message": f"row {n} has no name", "type": "ValueError", "line": 3} for n in range(7)]
    errors.insert(2, {"message": "row 2 has no name", "type": "ValueError", "line": 9})
    first, second = grouped(errors)
    assert (first.count, first.rows, first.message, first.line) == (7, (0, 1, 3, 4, 5), "row 0 has no name", 3)
    assert (second.count, second.rows, second.line) == (1, (2,), 9)


def test_errors_without_end_are_counted_by_their_code() -> None:
    groups = grouped({"message": "x" * n} for n in range(GROUPS + 50))
    assert (len(groups), groups[0].count, groups[0].message) == (GROUPS + 1, 50, "other errors of this kind")
    assert max(len(group.message) for group in groups) <= 300


def test_words_are_found_in_values_and_not_in_names() -> None:
    result = {"reason": 'it said "No"', "error": None, "value": {"deep": [{"n": 42}]}, "status": "scored"}
    row = JobRow(0, "exact@1", {"question": ["Straße\nzwei"]}, result, output="Grüße")
    for text in ("STRASSE\nzwei", 'said "no"', "42", "grü"):
        assert _Sought(text, ()).is_in(row), text
    for text in ("question", "scored", "None", "deep"):
        assert not _Sought(text, ()).is_in(row), text


def test_a_brief_row_is_small_whatever_is_in_it() -> None:
    long = "x" * 100_000
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"below": deep, "beside": [long] * 50}
    error = {"code": "user_exception", "message": long, "type": None, "line": 3, "traceback": long, "hint": None}
    metrics = {f"m{n}": n for n in range(1000)}
    result = {"status": "failed", "label": None, "reason": long, "metrics": metrics, "value": long, "error": error}
    result |= {"logs": {"stdout": long, "stderr": "", "truncated": False}, "warnings": [long], "score": 0.5}
    data: dict[str, Any] = {"question": long, "deep": deep, "trace": deep, "wide": list(range(5000)), "n": 10**400}
    made = row_preview(JobRow(7, "exact@1", data, result, output=long))
    assert len(json.dumps([made.row, made.result, made.output])) < 20_000
    assert (made.row["question"], made.result["score"]) == ("x" * 300 + "…", 0.5)
    assert "trace" not in made.row
    assert made.result["error"]["line"] == 3
    assert result["reason"] == long  # the original result stays unchanged


def test_a_brief_row_that_is_small_already_keeps_its_data() -> None:
    data = {"n": 1, "list": [1, {"a": None}], "text": "", "flag": True}
    result = {"label": "ok", "reason": None, "metrics": {}, "value": 1, "error": None, "logs": {}, "warnings": []}
    made = row_preview(JobRow(0, "exact@1", data, result))
    assert (made.row, made.output, made.result["label"]) == (data, None, "ok")
