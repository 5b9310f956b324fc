"""Two data sets have the same test cases if their rows differ only in the answers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.platform.datasets.files import RowsFolder
from evaluator_host.platform.datasets.table import Dataset
from evaluator_host.platform.jobs.results.same_rows import rows_differ


def kept(folder: RowsFolder, name: str, rows: list[dict[str, Any]]) -> Dataset:
    facts = folder.write(name, enumerate(rows, start=1), format_="json", max_bytes=1 << 20)
    return Dataset(name, "default", None, facts, datetime.now(UTC))


def case(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"test-{number}", "inputs": {"n": number}, "outputs": 1, "criteria_by_evaluator": {}, **fields}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ([case(1, outputs=2, trace={"spans": []}), case(2)], True),
        ([case(1)], False),
        ([case(2), case(1)], False),
        ([case(1, inputs={"n": 9}), case(2)], False),
        ([case(1), {**case(2), "criteria_by_evaluator": None}], False),
        ([{"inputs": {"n": 1}, "outputs": 1}, {"inputs": {"n": 2}, "outputs": 1}], False),
    ],
)
def test_same_cases(tmp_path: Path, other: list[dict[str, Any]], same: bool) -> None:
    folder = RowsFolder(tmp_path)
    one = kept(folder, "one", [case(1), case(2)])
    assert (rows_differ(folder, one, kept(folder, "other", other), {"outputs", "trace"}) is None) is same


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"question": "Rome?", "gold": "a", "answer": "other"}, None),
        ({"question": "Oslo?", "gold": "a", "answer": "a"}, "row 0 differs in question"),
        ({"question": "Rome?", "answer": "a"}, "row 0 differs in gold"),
    ],
)
def test_flat_rows_with_other_answers(tmp_path: Path, other: dict[str, Any], said: str | None) -> None:
    folder = RowsFolder(tmp_path)
    one = kept(folder, "one", [{"question": "Rome?", "gold": "a", "answer": "a"}])
    assert rows_differ(folder, one, kept(folder, "other", [other]), {"answer"}) == said
    assert rows_differ(folder, one, kept(folder, "two", [other, other]), {"answer"}) == "1 row and 2 rows"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"meta": {"q": "Rome?", "answer": "other"}, "split": "test"}, None),
        ({"meta": {"q": "Oslo?", "answer": "a"}, "split": "test"}, "row 0 differs in meta"),
        ({"meta": {"q": "Rome?"}, "meta.answer": "other", "split": "test"}, None),
        ({"meta": "text", "split": "test"}, "row 0 differs in meta"),
    ],
)
def test_only_the_answer_in_a_column_may_differ(tmp_path: Path, other: dict[str, Any], said: str | None) -> None:
    folder = RowsFolder(tmp_path)
    one = kept(folder, "one", [{"meta": {"q": "Rome?", "answer": "a"}, "split": "test"}])
    assert rows_differ(folder, one, kept(folder, "other", [other]), {"meta.answer"}) == said
    alone, again = (kept(folder, name, [{"meta": {"answer": name}}]) for name in ("a", "b"))
    assert rows_differ(folder, alone, again, {"meta.answer"}) is not None


def test_rows_of_answers_alone_are_never_the_same_cases(tmp_path: Path) -> None:
    folder = RowsFolder(tmp_path)
    one, other = (kept(folder, name, [{"answer": name}]) for name in ("a", "b"))
    assert rows_differ(folder, one, other, {"answer"}) is not None
