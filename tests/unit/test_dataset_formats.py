"""JSON arrays are split into items even if they arrive in pieces of any size, Parquet values become JSON, and media
types are recognised.
"""

import csv
import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from evaluator_host.platform.datasets import json_array
from evaluator_host.platform.datasets.json_array import ItemTooLong, NotAnArray, array_items, object_texts
from evaluator_host.platform.datasets.mapping import BadRow, Mapping, to_row
from evaluator_host.platform.datasets.readers import read_records
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Row
from evaluator_host.types.formats import Format

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(['"', "\\", '\\"', "[", "},", "\\\\"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


TRACE = {"spans": {"a": {"name": "root"}}}
LINES = "".join(
    json.dumps(row, ensure_ascii=False) + ",\n" for row in ({"a": 1}, {"a": "}, {"}, {"a": {"b": [{}]}})
).encode()
WANTED = [{"a": 1}, {"a": "}, {"}, {"a": {"b": [{}]}}]


@given(
    values=st.lists(JSON, min_size=1),
    indent=st.sampled_from([None, 1]),
    between=st.sampled_from(["", " ", "\n", ",\n"]),
    chunk=st.integers(1, 9),
)
def test_objects_are_cut_wherever_a_chunk_ends(values: list[Any], indent: int | None, between: str, chunk: int) -> None:
    objects = [{"a": value} for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "_CHUNK_BYTES", chunk)
        text = between.join(json.dumps(value, indent=indent) for value in objects).encode()
        texts = list(object_texts(io.BytesIO(text + b"\n"), max_item_bytes=1 << 20))
        assert [json.loads(item) for item in texts] == objects


@pytest.mark.parametrize(
    ("content", "format_", "note"),
    [
        (LINES, Format.JSONL, "line 1 ends in a comma"),
        (LINES, Format.JSON, "one object after another"),
        (LINES.replace(b",\n", b"\n"), Format.JSON, "one object after another"),
        (LINES.replace(b",\n", b" "), Format.JSON, "one object after another"),
        (b"\xef\xbb\xbf" + LINES.replace(b",\n", b"\r\n"), Format.JSON, "one object after another"),
        ("\n".join(json.dumps(row, indent=2) for row in WANTED).encode(), Format.JSONL, "one object after another"),
        ("\n".join(json.dumps(row, indent=2) for row in WANTED).encode(), Format.JSON, "one object after another"),
    ],
)
def test_objects_that_follow_one_another_are_rows(content: bytes, format_: Format, note: str) -> None:
    found, notes = noted(content, format_)
    assert found == WANTED
    assert [note in one for one in notes] == [True]


def test_text_between_objects_is_a_bad_row() -> None:
    found, _ = noted(b'{"a": 1} x {"a": 2}} {"a": 3} {"a": ', Format.JSON)
    assert [one if isinstance(one, dict) else one[:8] for one in found] == [
        {"a": 1}, "not JSON", "not JSON", {"a": 3}, "not JSON",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["sep=", '"sep=', "SEP=", "\ufeffsep="])
@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_line_that_names_the_separator_is_not_a_header(name: str, separator: str, encoding: str) -> None:
    first = name + separator + ('"' if '"' in name else "")
    found, notes = noted(f"{first}\r\na{separator}b\r\n1\r\n1{separator}2\r\n".encode(encoding), Format.CSV)
    assert found == ["it has 1 cells, but the header has 2", {"a": "1", "b": "2"}]
    assert len(notes) == (encoding != "utf-8")
    lines = [line for line, _ in records(b"sep=;\na;b\n1;2\n", Format.CSV)]
    assert lines == [3]


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": -Infinity}', '{"a":NaN,"b":Infinity}', '[{"a": NaN}]'])
def test_nan_in_json_is_null_with_a_note(text: str) -> None:
    found, notes = noted(text.encode(), Format.JSONL)
    assert found[0]["a"] is None
    assert [note for note in notes if "array" not in note] == [
        f"{'item' if text[0] == '[' else 'line'} 1 has NaN or Infinity, which JSON does not have; it was read as null"
    ]
    assert noted(b'{"a": "NaN"}\n{"a": NaN, "b": }', Format.JSONL)[1] == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"output": "a", "output": "b"}', "$.output"),
        ('{"a": {"b": 1, "b": 2}}', "$.a.b"),
        ('{"a" : [{"x":1}], "a" : 2}', "$.a"),
        ('{"a": "\\":", "c": 1, "a": "x"}', "$.a"),
    ],
)
def test_a_key_twice_is_noted(text: str, path: str) -> None:
    assert noted(text.encode(), Format.JSONL)[1] == [f"line 1 has the key {path} twice; only the last value was kept"]


@pytest.mark.parametrize("text", ['{"a": "\\":", "b" : "x\\u0022:", "c": {"b": 1}}', '{"a": [{"b": 1}, {"b": 2}]}'])
def test_a_key_in_two_objects_is_not_noted(text: str) -> None:
    assert noted(text.encode(), Format.JSONL)[1] == []


@pytest.mark.parametrize("text", ['{"a": "Nice \\ud83d"}', '{"b": [{"a": "\\ude00x"}]}', '{"\\ud83d": 1}'])
@pytest.mark.parametrize("format_", [Format.JSONL, Format.JSON])
def test_half_a_character_makes_a_bad_row_with_its_path(text: str, format_: Format) -> None:
    found, _ = noted(f'[{text}, {{"a": "Nice 😀"}}]'.encode() if format_ is Format.JSON else text.encode(), format_)
    path = "$.b[0].a" if "b" in text else "$.a" if "a" in text else "$ (a key)"
    assert f"the text at {path}" in found[0]
    assert found[1:] == ([{"a": "Nice 😀"}] if format_ is Format.JSON else [])


@pytest.mark.parametrize("format_", list(Format))
def test_a_trace_and_inputs_as_text_are_objects_in_every_format(format_: Format) -> None:
    record = {"inputs": '{"q": "wo"}', "trace": " " + json.dumps(TRACE), "outputs": "Köln"}
    found, notes = noted(as_file(record, format_), format_)
    assert [to_row(one, Mapping()) for one in found] == [Row(inputs={"q": "wo"}, outputs="Köln", trace=TRACE)]
    assert notes == []
    mapped = Mapping.parse(["trace=spans", "inputs=question"])
    flat, _ = noted(as_file({"question": '{"q": 1}', "spans": json.dumps(TRACE)}, format_), format_)
    assert [to_row(one, mapped) for one in flat] == [Row(inputs={"q": 1}, trace=TRACE)]


@pytest.mark.parametrize("format_", list(Format))
def test_text_that_is_not_json_stays_text(format_: Format) -> None:
    record = {"inputs": "{name}, hello", "trace": "Traceback: …", "criteria": "be polite", "output": "{a}"}
    found, notes = noted(as_file(record, format_), format_)
    assert found == [record]
    assert [note.startswith("`trace` in line") for note in notes] == [True]
    assert to_row(found[0], Mapping()) == Row(inputs=record, outputs="{a}")
    bad, _ = noted(as_file({"trace": '{"spans": ', "q": "x"}, format_), format_)
    assert [one.startswith("trace is not JSON") for one in bad] == [True]


@pytest.mark.parametrize("format_", list(Format))
def test_json_as_text_may_be_a_list_of_spans_or_have_nan(format_: Format) -> None:
    spans = [{"name": "a", "span_id": "1"}]
    record = {"inputs": '{"n": NaN, "m": [-Infinity]}', "trace": json.dumps(spans), "outputs": "a"}
    found, notes = noted(as_file(record, format_), format_)
    assert [to_row(one, Mapping()) for one in found] == [
        Row(inputs={"n": None, "m": [None]}, outputs="a", trace={"spans": spans})
    ]
    assert [note.startswith("`inputs` in line") and "NaN" in note for note in notes] == [True]
    bracketed, _ = noted(as_file({"trace": "[warn] slow", "q": "x"}, format_), format_)
    assert bracketed == [{"trace": "[warn] slow", "q": "x"}]
    large = {"inputs": '{"n": NaN, "m": 1e400}', "q": "x"}
    assert noted(as_file(large, format_), format_) == ([large], [])


@pytest.mark.parametrize("text", ["", " ", "null"])
def test_a_trace_or_variables_of_no_text_are_none(text: str) -> None:
    record = {"trace": text, "variables": text, "inputs": {"a": 1}}
    found, notes = noted(json.dumps(record).encode(), Format.JSONL)
    assert ([to_row(one, Mapping()) for one in found], notes) == ([Row(inputs={"a": 1})], [])


def test_a_comma_after_blanks_is_read_too() -> None:
    found, notes = noted(b'{"a": 1} ,\r\n{"a": 2}\t, \n', Format.JSONL)
    assert (found, [note.startswith("line 1 ends in a comma") for note in notes]) == ([{"a": 1}, {"a": 2}], [True])


def as_file(record: dict[str, str], format_: Format) -> bytes:
    """Encode one row as a file in this format."""
    match format_:
        case Format.JSONL:
            return json.dumps(record).encode()
        case Format.JSON:
            return json.dumps([record]).encode()
        case Format.CSV | Format.TSV:
            file = io.StringIO()
            csv.writer(file, delimiter="\t" if format_ is Format.TSV else ",").writerows([record, record.values()])
            return file.getvalue().encode()
        case Format.XLSX:
            return workbook(list(record), list(record.values()))
        case Format.PARQUET:
            made = io.BytesIO()
            parquet.write_table(pa.table({name: [value] for name, value in record.items()}), made)
            return made.getvalue()


def items(text: bytes, limit: int = 1 << 20) -> list[bytes]:
    return list(array_items(io.BytesIO(text), max_item_bytes=limit))


@given(values=st.lists(JSON), chunk=st.integers(1, 9), indent=st.sampled_from([None, 1]))
def test_an_array_is_cut_into_its_items_wherever_a_chunk_ends(
    values: list[Any], chunk: int, indent: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "_CHUNK_BYTES", chunk)
        text = json.dumps(values, indent=indent).encode()
        assert [json.loads(item) for item in items(b" \n" + text + b"\n ")] == values


@pytest.mark.parametrize("text", [b"", b"  ", b"{}", b"[1, 2", b'["a', b'["a\\"]', b"[1] 2", b"[1]]", b"[[1]"])
def test_text_that_is_not_an_array_is_refused(text: bytes) -> None:
    with pytest.raises(NotAnArray):
        items(text)


def test_a_bad_item_is_left_to_its_decoder() -> None:
    assert items(b"[1,,nonsense,]") == [b"1", b"", b"nonsense", b""]


@pytest.mark.slow
def test_nesting_costs_nothing_and_an_item_has_a_limit() -> None:
    deep = b"[" * 200_000 + b"]" * 200_000
    assert items(b"[" + deep + b"]") == [deep]
    with pytest.raises(ItemTooLong):
        items(b"[" + deep + b"]", limit=399_999)


def noted(content: bytes, format_: Format) -> tuple[list[Any], list[str]]:
    """Return a file's records, and the notes about the file."""
    notes: list[str] = []
    found = [
        str(one) if isinstance(one, BadRow) else one
        for _, one in read_records(io.BytesIO(content), format_, max_row_bytes=1 << 20, note=notes.append)
    ]
    return found, notes


def workbook(*rows: list[Any], sheets: int = 1) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for _ in range(1, sheets):
        book.create_sheet()
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


ROWS = [{"frage": "wo", "gold": "Köln"}, {"frage": "wann, wie", "gold": "…"}]
TEXT = 'frage;gold\nwo;Köln\n"wann, wie";…\n'


@pytest.mark.parametrize(
    ("content", "format_", "notes"),
    [
        (TEXT.encode(), Format.CSV, ["semicolons"]),
        (TEXT.encode("utf-8-sig"), Format.CSV, ["semicolons"]),
        (TEXT.replace(";", "\t").encode(), Format.CSV, ["tabs"]),
        (TEXT.encode(), Format.TSV, ["semicolons"]),
        (TEXT.encode("cp1252"), Format.CSV, ["Windows-1252", "semicolons"]),
        (TEXT.encode("utf-16"), Format.CSV, ["UTF-16", "semicolons"]),
        (TEXT.replace(";", "\t").encode("utf-16-le"), Format.TSV, ["UTF-16"]),
        (json.dumps(ROWS, ensure_ascii=False).encode(), Format.JSON, []),
        (json.dumps(ROWS, ensure_ascii=False).encode("utf-16"), Format.JSON, ["UTF-16"]),
        (json.dumps(ROWS, indent=1).encode(), Format.JSONL, ["one JSON array"]),
        ("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode("cp1252"), Format.JSONL, ["1252"]),
        (workbook(["frage", "gold"], ["wo", "Köln"], ["wann, wie", "…"]), Format.XLSX, []),
        ('\n\r\nfrage,gold\nwo,Köln\n\n"wann, wie",…\n'.encode(), Format.CSV, []),
        (workbook([], ["frage", "gold"], ["wo", "Köln"], [], ["wann, wie", "…"]), Format.CSV, ["Excel"]),
    ],
)
def test_files_as_common_programs_write_them_are_read_with_a_note(
    content: bytes, format_: Format, notes: list[str]
) -> None:
    found, told = noted(content, format_)
    assert found == ROWS
    assert len(told) == len(notes)
    assert all(word in note for word, note in zip(notes, told, strict=True))


@pytest.mark.parametrize("before", [0, (1 << 16) - 1, 1 << 16])
@pytest.mark.parametrize(
    ("ending", "is_windows"),
    [(b"\xe9 a", True), (b"\xe9\x81", False), ("é".encode() + b" \xe9 a", False), ("é".encode(), False), (b"a", False)],
)
def test_windows_text_is_told_from_damaged_utf_8_wherever_a_chunk_ends(
    before: int, ending: bytes, *, is_windows: bool
) -> None:
    _, notes = noted(b'{"a": "%b"}\n{"b": "%b"}' % (b"x" * (before - 8), ending), Format.JSONL)
    assert notes == [note for note in notes if "1252" in note]
    assert bool(notes) == is_windows


def test_the_first_sheet_of_a_workbook_has_numbers_times_and_empty_cells() -> None:
    day = dt.datetime(2026, 5, 1, 12)  # noqa: DTZ001 - Excel's times have no zone
    content = workbook(
        ["n", None, "at", "criteria"], [1, 2.5, day, '{"a": 1}'], [True, None, None], ["x"] * 5, sheets=3
    )
    found, notes = noted(content, Format.XLSX)
    assert found == [
        {"n": 1, "column 2": 2.5, "at": "2026-05-01T12:00:00", "criteria": {"a": 1}},
        {"n": True, "column 2": None, "at": None, "criteria": None},
        "it has 5 cells, but the header has 4",
    ]
    assert notes == [
        "the first sheet, 'Sheet', was read; the workbook has 2 more",
        "cells of the header are empty; their columns are called 'column 2'",
    ]


@pytest.mark.parametrize(
    ("content", "format_", "message"),
    [
        (b"PK\x03\x04 no workbook", Format.XLSX, "not an Excel workbook"),
        (b"a,b\n1,2\n", Format.XLSX, "not an Excel workbook"),
        (workbook(["a", "a"]), Format.XLSX, "have the same name: a"),
        (b'a,"b"x\n1,2\n', Format.CSV, "the header in line 1 is not CSV"),
        (b"a,column 3,\n1,2,3\n", Format.CSV, "have the same name: column 3"),
        ("a,b\nä,1\n".encode() + b"\xff,2\n", Format.CSV, "not UTF-8 near line 1; in Excel, Save as: CSV UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_to_do(content: bytes, format_: Format, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        noted(content, format_)


def test_empty_cells_are_reported_for_each_column() -> None:
    found, notes = noted(b'a,b,c\n1,,x\n,,y\n2,"",z\n', Format.CSV)
    assert notes == ["some cells are empty, and were read as empty strings: 3 in 'b', 1 in 'a'"]
    assert found[1] == {"a": "", "b": "", "c": "y"}


def test_columns_without_a_name_are_numbered_as_in_a_workbook() -> None:
    found, notes = noted(b",a,,\n1,2,3,4\n", Format.CSV)
    assert notes == ["cells of the header are empty; their columns are called 'column 1', 'column 3', 'column 4'"]
    assert found == [{"column 1": "1", "a": "2", "column 3": "3", "column 4": "4"}]


def test_other_suffixes_say_how_to_name_the_format() -> None:
    with pytest.raises(InvalidRequest, match="name the `format`: jsonl"):
        Format.of_name("rows.txt")
    with pytest.raises(InvalidRequest, match=r"save it as \.xlsx"):
        Format.of_name("rows.xls")


def records(content: bytes, format_: Format, *, max_row_bytes: int = 1 << 20) -> list[Any]:
    return list(read_records(io.BytesIO(content), format_, max_row_bytes=max_row_bytes))


def test_bad_items_of_an_array_are_kept_out_by_number() -> None:
    found = records(b'\xef\xbb\xbf [{"a": 1}, {"a": }, {"a": 3}]', Format.JSON)
    assert found[0] == (1, {"a": 1})
    assert isinstance(found[1][1], BadRow)
    assert found[2] == (3, {"a": 3})


def test_an_object_around_the_rows_is_taken_too() -> None:
    assert records(b'{"rows": [{"a": 1}], "more": 1}', Format.JSON) == [(1, {"a": 1})]
    with pytest.raises(InvalidRequest, match=r"\{\"rows\""):
        records(b'{"row": []}', Format.JSON)


def test_parquet_values_become_json_values(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["a", None],
            "number": [1.5, float("nan")],
            "when": [dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), None],
            "day": [dt.date(2026, 1, 2), None],
            "exact": [Decimal("2.00"), Decimal("2.50")],
            "bytes": [b"abc", b"\xff"],
            "nested": [{"list": [1, 2]}, {"list": []}],
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    first, second = records(content, Format.PARQUET)
    assert first == (
        1,
        {
            "text": "a",
            "number": 1.5,
            "when": "2026-01-02T03:04:05+00:00",
            "day": "2026-01-02",
            "exact": 2,
            "bytes": "abc",
            "nested": {"list": [1, 2]},
        },
    )
    assert second == (
        2,
        {
            "text": None,
            "number": None,
            "when": None,
            "day": None,
            "exact": 2.5,
            "bytes": "/w==",
            "nested": {"list": []},
        },
    )
    for damaged in (b"", b"PAR1", content[: len(content) // 2], b"x" * 100):
        with pytest.raises(InvalidRequest, match="not Parquet"):
            records(damaged, Format.PARQUET)


@pytest.mark.parametrize(
    ("media_type", "format_"),
    [
        ("application/x-ndjson", Format.JSONL),
        ("text/csv; charset=utf-8", Format.CSV),
        ("Application/JSON", Format.JSON),
    ],
)
def test_a_format_is_known_by_its_media_type(media_type: str, format_: Format) -> None:
    assert Format.of_media_type(media_type) is format_


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match="text/csv"):
        Format.of_media_type("text/html")
    with pytest.raises(InvalidRequest, match=r"\.parquet"):
        Format.of_name("rows.doc")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", "nested more than 200 levels deep"),
        ('{"a": NaN, "b": "\\ud83d"}', "half of a surrogate pair"),
        ('{"a": NaN, "b": 1e400}', "not JSON"),
        ('{"a": 1e400}', "too large for a float"),
    ],
)
def test_a_line_that_would_come_back_as_another_is_refused(line: str, words: str) -> None:
    ((_, row),) = read_records(io.BytesIO(line.encode()), Format.JSONL, max_row_bytes=1 << 20)
    assert isinstance(row, BadRow)
    assert words in str(row)
