"""An interrupted download continues at the row where it broke off; the tests try this for each row."""

import json
from pathlib import Path

import pytest

from evaluator_host.client.kept_rows import KeptRows, kept_rows
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.formats import Format

NUMBERS = (0, 0, 1, 1, 12, 12, 123)
CELLS = ("a", 'say "b"', "two\nlines", "", "a,b", "\r\n")
HEADER = 'index,evaluator,"row.a\nb"\r\n'
CSV = [f'{n},exact@{at % 2},"{CELLS[at % 6].replace(chr(34), 2 * chr(34))}"\r\n' for at, n in enumerate(NUMBERS)]
JSONL = [json.dumps({"index": n, "evaluator": f"exact@{at % 2}"}) + "\n" for at, n in enumerate(NUMBERS)]
FILES = {Format.CSV: (HEADER, CSV), Format.JSONL: ("", JSONL)}


@pytest.mark.parametrize("format_", FILES)
def test_the_kept_rows_and_the_rest_are_the_whole_file(format_: Format, tmp_path: Path) -> None:
    header, lines = FILES[format_]
    whole, part = "".join([header, *lines]).encode(), tmp_path / "rows.part"
    for size in range(len(whole) + 1):
        part.write_bytes(whole[:size])
        kept = kept_rows(part, format_)
        rest = "".join(line for number, line in zip(NUMBERS, lines, strict=True) if number >= kept.next_row)
        assert kept.size <= size
        assert kept.header == (header.encode() if kept.size else b"")
        assert whole[: kept.size] + (b"" if kept.size else header.encode()) + rest.encode() == whole
    assert kept.next_row == NUMBERS[-1]


def test_a_shard_that_is_complete_is_taken_up_before_its_last_row(tmp_path: Path) -> None:
    part = tmp_path / "rows.part"
    part.write_text("".join(JSONL) + '{"shard": "1/2", "rows": 7}\n')
    assert kept_rows(part, Format.JSONL).next_row == NUMBERS[-1]


def test_other_files_are_refused_and_a_missing_file_begins_a_new_one(tmp_path: Path) -> None:
    part = tmp_path / "rows.part"
    assert kept_rows(part, Format.CSV) == KeptRows()
    with pytest.raises(InvalidRequest, match="parquet download cannot be resumed"):
        kept_rows(part, Format.PARQUET)
    part.write_text("a,b\nx,y\n")
    for format_ in FILES:
        with pytest.raises(InvalidRequest, match=f"is not an unfinished {format_} download"):
            kept_rows(part, format_)
