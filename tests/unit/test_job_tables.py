"""Tables of jobs in a terminal show the content of a row's inputs and outputs."""

from typing import Any

from evaluator_host.platform.terminal.job_tables import rows_table
from evaluator_host.types.results import JobRow

RESULT = {"status": "scored", "score": 0.5, "passed": False, "reason": "near", "error": None, "metrics": {}}


def shown(row: dict[str, Any], mapping: dict[str, str], **more: Any) -> list[str]:
    return rows_table([JobRow(7, "exact@1", row, RESULT, **more)], mapping).plain.split("\n")


def test_a_row_shows_the_start_of_its_outputs_and_inputs() -> None:
    row = {"question": "Capital of France?", "answer": "Paris, " * 20, "n": 3, "none": None}
    header, line = shown(row, {"outputs": "answer"})
    assert header.split() == ["ROW", "FROM", "0", "EVALUATOR", "STATUS", "SCORE", "PASSED", "OUTPUTS", "INPUTS", "WHY"]
    assert "Paris, Paris, Paris, Paris, Paris, Pari…" in line
    assert "question: Capital of France?, n: 3" in line
    assert line.startswith("7  ")
    assert line.endswith("near")


def test_outputs_that_are_mapped_from_within_a_column_are_shown() -> None:
    assert (
        "Paris" in shown({"inputs": {"country": "France", "gold": "Paris"}}, {"outputs": "inputs.gold"})[1].split()[5]
    )


def test_a_few_metrics_are_columns() -> None:
    two = RESULT | {"metrics": {"score": 0.5, "tone": 1.0, "length": 3}}
    many = RESULT | {"metrics": {f"m{n}": n for n in range(7)}}
    rows = [JobRow(n, "all@1", {}, result) for n, result in enumerate((RESULT, two))]
    header, _, line = rows_table(rows, {}).plain.split("\n")
    assert header.split()[6:9] == ["PASSED", "tone", "length"]
    assert line.split()[4:7] == ["False", "1", "3"]
    assert "m0" not in rows_table([JobRow(0, "all@1", {}, many)], {}).plain


def test_the_answer_of_the_job_s_model_is_shown_and_rows_of_the_api_s_form() -> None:
    assert "Rome" in shown({"question": "?", "output": "Paris"}, {}, output="Rome", request={})[1]
    line = shown({"inputs": {"question": "?"}, "outputs": {"a": 1}}, {})[1]
    assert '{"a":1}' in line
    assert "question: ?" in line
