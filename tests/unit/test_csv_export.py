"""In CSV files, text that a spreadsheet would run as a formula is marked, and other text is not changed."""

import pytest

from evaluator_host.platform.jobs.results.exports import _csv_cell


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        (" =1+1", "' =1+1"),
        ("\xa0@SUM(1)", "'\xa0@SUM(1)"),
        (";=1+1", ";'=1+1"),
        ("a; +1+1;b", "a;' +1+1;b"),
        ("a\t-1+1", "a\t'-1+1"),
        ("a\r\n=1+1", "a\r\n'=1+1"),
        ("\tx", "'\tx"),
        (";;;=1", ";;;'=1"),
    ],
)
def test_text_that_a_spreadsheet_would_run_is_marked_wherever_it_begins_a_cell(text: str, cell: str) -> None:
    assert _csv_cell(text) == cell


@pytest.mark.parametrize("text", ["-1.5", "a-b", "1; 2", "first\n- one\n- two", "a = b", "x@example.com", ""])
def test_other_text_stays(text: str) -> None:
    assert _csv_cell(text) == text
