"""Lines of a data file become rows, or are reported as bad, or end the command with an error."""

import json
from pathlib import Path

import pytest

from evaluator_host.platform.datasets.mapping import Mapping
from evaluator_host.platform.datasets.queries import Condition, compare_rows, describe_columns, search_rows
from evaluator_host.platform.datasets.rows import RowFile
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Row

MB = 1 << 20


def read(
    folder: Path, name: str, content: str | bytes, *, mapping: tuple[str, ...] = (), limit: int | None = None
) -> tuple[list[tuple[int, Row]], list[tuple[int, str]]]:
    """Return the rows of a file and its bad lines, each with its line number."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    bad: list[tuple[int, str]] = []
    file = RowFile(
        path,
        Mapping.parse(list(mapping)),
        max_row_bytes=MB,
        limit=limit,
        report=lambda line, message: bad.append((line, message)),
    )
    rows = [(source.line, source.row) for source in file]
    assert file.bad == len(bad)
    return rows, bad


def test_a_row_object_keeps_its_fields_and_other_keys_do_not_matter(tmp_path: Path) -> None:
    rows, bad = read(tmp_path, "a.jsonl", '{"id": 7, "inputs": {"q": 1}, "outputs": 0, "trace": {"spans": {}}}\n')
    assert rows == [(1, Row({"q": 1}, 0, {"spans": {}}))]
    assert not bad


@pytest.mark.parametrize("column", ["output", "outputs"])
def test_a_flat_row_is_all_inputs_and_its_output_column_is_the_outputs(tmp_path: Path, column: str) -> None:
    rows, _ = read(tmp_path, "a.jsonl", f'{{"q": 1, "{column}": ""}}')
    assert rows == [(1, Row({"q": 1, column: ""}, ""))]


def test_variables_alone_make_a_row(tmp_path: Path) -> None:
    assert read(tmp_path, "a.jsonl", '{"variables": {"target": 1}}')[0] == [(1, Row(variables={"target": 1}))]


def test_messages_are_a_conversation(tmp_path: Path) -> None:
    said = '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]'
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    lines = f'{{"q": 1, "messages": {said}}}\n{{"inputs": {{"q": 1}}, "messages": {said}, "outputs": "x"}}\n'
    rows, bad = read(tmp_path, "a.jsonl", lines + '{"messages": "text"}\n{"inputs": {}, "messages": ["text"]}\n')
    inputs = {"q": 1, "messages": messages}
    assert [row for _, row in rows[:2]] == [
        Row(inputs, "hello", messages=messages),
        Row(inputs, "x", messages=messages),
    ]
    assert rows[2][1] == Row({"messages": "text"})
    assert bad == [(4, "messages must be a list of objects with role and content")]
    quoted = said.replace('"', '""')
    assert read(tmp_path, "a.csv", f'q,messages\n1,"{quoted}"\n2,[sic]\n')[0] == [
        (2, Row({"q": "1", "messages": messages}, "hello", messages=messages)),
        (3, Row({"q": "2", "messages": "[sic]"})),
    ]
    mapped = read(tmp_path, "a.jsonl", f'{{"chat": {said}}}', mapping=("messages=chat",))[0]
    assert mapped[0][1].outputs == "hello"


def test_bad_lines_are_reported_by_number_and_left_out(tmp_path: Path) -> None:
    content = '\ufeff{"a": 1}\n\n{nonsense\n[1]\n{"inputs": {}, "trace": 3}\n{"a": "' + "x" * MB + '"}\n{"a": 2}'
    rows, bad = read(tmp_path, "a.jsonl", content)
    assert [line for line, _ in rows] == [1, 7]
    assert [line for line, _ in bad] == [3, 4, 5, 6]
    assert bad[1][1] == "a row must be an object, not a list"
    assert bad[3][1] == "longer than 1 MB"


def test_integers_beyond_64_bits_stay_exact(tmp_path: Path) -> None:
    assert read(tmp_path, "a.jsonl", f'{{"n": {2**80}}}')[0] == [(1, Row({"n": 2**80}))]


def test_csv_cells_stay_text_but_for_the_trace(tmp_path: Path) -> None:
    rows, bad = read(tmp_path, "a.csv", '\ufeffn,outputs,trace\n1,"two\nlines","{""spans"": {}}"\n2,x,\n')
    assert rows == [
        (2, Row({"n": "1", "outputs": "two\nlines", "trace": {"spans": {}}}, "two\nlines", {"spans": {}})),
        (4, Row({"n": "2", "outputs": "x", "trace": None}, "x")),
    ]
    assert not bad


def test_bad_csv_records_are_reported_by_number(tmp_path: Path) -> None:
    rows, bad = read(tmp_path, "a.csv", 'q,trace\na\nb,{\nc,"d"e\nf,\n')
    assert [(line, row.inputs["q"]) for line, row in rows] == [(5, "f")]
    assert [line for line, _ in bad] == [2, 3, 4]


def test_tsv_and_json_arrays_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, "a.tsv", "q\toutput\n1\t2\n")[0] == [(2, Row({"q": "1", "output": "2"}, "2"))]
    assert read(tmp_path, "a.json", '[{"q": 1}, {"q": 2}]')[0] == [(1, Row({"q": 1})), (2, Row({"q": 2}))]


def test_a_mapping_fills_fields_from_columns_and_nested_columns(tmp_path: Path) -> None:
    mapping = ("outputs=answer.text", "inputs.correct_answer=gold", "variables.target=gold")
    rows, bad = read(tmp_path, "a.jsonl", '{"gold": 1, "answer": {"text": "x"}}\n{"gold": 2}\n', mapping=mapping)
    inputs = {"gold": 1, "answer": {"text": "x"}, "correct_answer": 1}
    assert rows == [(1, Row(inputs, "x", variables={"target": 1}))]
    assert bad == [(2, "there is no column 'answer.text'; the columns are: gold")]


def test_a_limit_stops_reading(tmp_path: Path) -> None:
    rows, bad = read(tmp_path, "a.jsonl", '{"n": 1}\n{"n": 2}\nnonsense\n', limit=2)
    assert [row.inputs["n"] for _, row in rows] == [1, 2]
    assert not bad


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", "", ".jsonl"),
        ("a.csv", b"a\n\x81\n", "UTF-8"),
        ("a.csv", "a,a\n1,2\n", "the same name: a; rename them"),
        ("a.json", "{", "not JSON"),
        ("a.json", '{"q": 1}', ".jsonl"),
    ],
)
def test_a_file_that_is_not_what_its_suffix_says_is_refused(
    tmp_path: Path, name: str, content: str | bytes, says: str
) -> None:
    with pytest.raises(InvalidRequest, match=says):
        read(tmp_path, name, content)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="No such file"):
        RowFile(tmp_path / "a.jsonl", Mapping(), max_row_bytes=MB, limit=None, report=lambda *_: None)


@pytest.mark.parametrize(
    "pair", ["answer", "outputs=", "outputs.a=b", "inputs.=b", "correct_answer.a=b", "outputs={{ a", "score=b"]
)
def test_a_mapping_that_sets_what_no_row_has_is_refused(pair: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Mapping.parse([pair])
    assert refused.value.problems[0].field == "--map"


def test_versions_of_many_rows_are_compared(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    rows = [f'{{"n":{number}}}\n' for number in range(20_000)]
    before.write_text("".join(rows))
    rows[17] = '{"n":"changed"}\n'
    del rows[5000:5003]
    rows.insert(15_000, '{"n":"new"}\n')
    after.write_text("".join(rows))
    found = compare_rows(before, after, 0, 100)
    assert (found.changed, found.added, found.removed) == (1, 1, 3)
    assert [(one.kind, one.index) for one in found.rows] == [
        ("changed", 17), ("removed", 5000), ("removed", 5001), ("removed", 5002), ("added", 15_000),
    ]  # fmt: skip
    assert (found.rows[0].before, found.rows[0].after) == ({"n": 17}, {"n": "changed"})
    assert [one.index for one in compare_rows(before, after, 1, 2).rows] == [5000, 5001]
    before.write_text("{}\n" * 20_000)
    after.write_text("{}\n" * 100 + '{"a":1}\n' + "{}\n" * 19_000)
    found = compare_rows(before, after, 0, 100)
    assert (found.changed, found.added, found.removed) == (1, 0, 899), "equal rows must be paired"


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("id=9007199254740993", [0, 1]),
        ("id=9007199254740992", [2]),
        ("id>9007199254740992", [0, 1]),
        ("id<9007199254740993", [2, 3, 4]),
        ("id=1", [3, 4]),
        ("id>=1.5", [0, 1, 2]),
    ],
)
def test_numbers_over_2_to_the_53_are_not_rounded_in_a_condition(tmp_path: Path, where: str, found: list[int]) -> None:
    file = tmp_path / "rows"
    ids = ["9007199254740993", '"9007199254740993"', "9007199254740992", "1", '"1.0"', '"nan"', f'"{"9" * 5000}"']
    file.write_text("".join(f'{{"id":{one}}}\n' for one in ids))
    rows = search_rows(file, "", [Condition.parse(where)], None, 0, 10).rows
    assert [one.index for one in rows] == found
    ordered = search_rows(file, "", [Condition.parse("id>1")], "id", 0, 10).rows
    assert [one.index for one in ordered] == [2, 0, 1]


@pytest.mark.parametrize("text", ["1_000", "12_34", "0x10", "inf", "nan", "٣", "1e999"])
def test_texts_that_only_some_languages_read_as_numbers_are_texts(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows"
    file.write_text("".join(json.dumps({"id": one}) + "\n" for one in ("5", text, "10")))
    (column,) = describe_columns(file)
    assert (column.min, column.max, column.mean) == (None, None, None)
    compared = [search_rows(file, "", [Condition.parse(f"id{sign}0")], None, 0, 9).rows for sign in (">", "<")]
    assert [[one.index for one in rows] for rows in compared] == [[0, 2], []]
    digits = search_rows(file, "", [Condition.parse(f"id={text.replace('_', '')}")], None, 0, 9).rows
    assert [one.index for one in digits] == [] if "_" in text else [1]
    assert [one.index for one in search_rows(file, "", [], "id", 0, 9).rows] == [0, 2, 1]


def test_thousands_of_digits_are_a_text(tmp_path: Path) -> None:
    file, text = tmp_path / "rows", "0" * 5000
    file.write_text(json.dumps({"id": text}) + "\n")
    (column,) = describe_columns(file)
    assert (column.min, column.mean) == (None, None)
    assert [one.index for one in search_rows(file, "", [Condition.parse("id>0")], "id", 0, 9).rows] == []


def test_empty_values_are_counted_apart_from_missing_values(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text('{"a":"","b":"x"}\n{"a":null,"b":""}\n{"a":"","b":" "}\n{"b":"y"}\n')
    a, b = describe_columns(file)
    assert (a.present, a.missing, a.empty) == (2, 2, 2)
    assert (b.present, b.missing, b.empty) == (4, 0, 1)


def test_long_texts_that_begin_alike_are_distinct(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text("".join(f'{{"prompt":"{"x" * 200}{end}"}}\n' for end in ("a", "b", "", "b")))
    (column,) = describe_columns(file)
    assert column.distinct == 3
    assert [(one.value, one.count) for one in column.top] == [("x" * 200, 2), ("x" * 200, 1), ("x" * 200, 1)]


def test_the_mean_of_a_column_is_exact(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text("".join(json.dumps({"x": x}) + "\n" for x in (0.1, "0.2", 0.6, 1e16, -1e16, 1)))
    (column,) = describe_columns(file)
    assert (column.mean, column.min, column.max) == (1.9 / 6, -1e16, 1e16)


def test_a_search_finds_values_and_not_names_of_columns(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text('{"answer":"Rome","meta":{"answer":[1.5]}}\n{"answer":"the ANSWER"}\n{"answer":"STRASSE"}\n')
    found = {
        text: [one.index for one in search_rows(file, text, [], None, 0, 9).rows]
        for text in ("answer", "1.5", "straße")
    }
    assert found == {"answer": [1], "1.5": [0], "straße": [2]}
