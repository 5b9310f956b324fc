"""To suggest a column for outputs, the host compares the columns' names, then their values.

The host never suggests a column with inputs or expected answers.
"""

from typing import Any

import pytest

from evaluator_host.platform.datasets.first_rows import FirstRows, first_rows
from evaluator_host.platform.datasets.mapping import Mapping, to_row
from evaluator_host.platform.datasets.rendering import names_in_templates
from evaluator_host.platform.datasets.suggestion import expected_column, nearest, output_column, suggest_mapping
from evaluator_host.types.errors import InvalidRequest

NAMES = {
    "id question expected answer": "answer",
    "id question expected reply": "reply",
    "prompt completion": "completion",
    "question reference_answer model_output": "model_output",
    "input expected_output actual_output": "actual_output",
    "query ground_truth Response": "Response",
    "question correct_answer gpt4_answer": "gpt4_answer",
    "frage erwartete_antwort antwort": "antwort",
    "outputs answer": "outputs",
    "question expected_response": None,
    "question true_label gold": None,
    "id prompt target": None,
    "question answer_id expected": None,
}


@pytest.mark.parametrize("columns", NAMES)
def test_the_column_of_outputs_is_reported_by_its_name(columns: str) -> None:
    assert output_column(columns.split()) == NAMES[columns]


@pytest.mark.parametrize(
    ("columns", "found"),
    [("prompt answer completion", "completion"), ("prompt answer", None), ("answer response", "response")],
)
def test_a_column_that_the_code_reads_itself_is_not_that_of_outputs(columns: str, found: str | None) -> None:
    assert output_column(columns.split(), read=["completions"], taken=["answer", "kwargs"]) == found


VALUES: list[tuple[dict[str, list[Any]], str | None]] = [
    ({"id": [1, 2], "expected": ["Paris", "Rome"], "gpt": ["paris ", "Oslo"], "ms": [12, 13]}, "gpt"),
    ({"question": ["a", "b"], "bot": ["It is the town of Paris.", "I cannot say, I am sorry."], "n": [1, 2]}, "bot"),
    ({"question": ["What is the town of France?"] * 2, "n": [1, 2]}, None),
    ({"a": ["a long text of some model"] * 2, "b": ["another long text of a model"] * 2}, None),
    ({"label": ["yes", "no"], "verdict": ["yes", "yes"], "flag": [True, False]}, "verdict"),
]


@pytest.mark.parametrize(("columns", "expected"), VALUES)
def test_a_column_without_a_known_name_is_suggested_by_its_values(
    columns: dict[str, list[Any]], expected: str | None
) -> None:
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    assert output_column(list(columns), rows) == expected


def test_a_mapping_is_suggested_of_all_that_is_read() -> None:
    columns = ["query", "gold", "Reply", "context"]
    found = suggest_mapping(columns, ["question", "expected", "context", "correct_answer", "user"], [])
    assert found == {
        "outputs": "Reply",
        "inputs.question": "query",
        "inputs.expected": "gold",
        "correct_answer": "gold",
    }
    assert suggest_mapping(columns, [], [], generated=True) == {}
    assert suggest_mapping(["inputs", "answer"], ["question"], []) == {}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("anser", "answer"), ("Answer", "answer"), ("expcted", "expected_text"), ("zzz", None), ("an swer", "answer")],
)
def test_the_nearest_name_is_found(name: str, meant: str | None) -> None:
    assert nearest(name, ["answer", "expected_text"]) == meant


def first(mapping: dict[str, str], records: list[dict[str, Any]]) -> FirstRows:
    made = Mapping.from_sources(mapping)
    return first_rows("support", records, made, names_in_templates([template for _, template in made.templates]))


RECORDS: list[dict[str, Any]] = [{"answer": "a", "meta": {"gold": 1}}, {"answer": "b", "late": 1, "meta": {}}]


@pytest.mark.parametrize(
    ("mapping", "refused"),
    [
        ({"outputs": "anser"}, "support has no column anser; did you mean answer?"),
        ({"inputs.a": "answer", "inputs.b": "mta.gold"}, "support has no column mta.gold; did you mean meta?"),
        ({"outputs": "zzz"}, "support has no column zzz"),
        ({"outputs": "gold"}, "support has no column gold; did you mean meta.gold?"),
        ({"outputs": "{{ anser }}"}, "support has no column anser; did you mean answer?"),
        ({"outputs": "{{ answer }} {{ lat.x | upper }}"}, "support has no column lat; did you mean late?"),
        ({"outputs": "{{ anser | default(answer) }}"}, None),
        ({"outputs": "{% if anser is defined %}{{ anser }}{% endif %}"}, None),
        ({"outputs": "{{ item.answer }}{% for one in meta %}{{ one }}{% endfor %}"}, None),
        ({"outputs": "late"}, None),
        ({"outputs": "meta.gold"}, None),
        ({"outputs": "{{ answer }}!"}, None),
        ({"outputs": "none"}, None),
        ({}, None),
    ],
)
def test_a_mapping_of_columns_that_are_not_there_is_refused(mapping: dict[str, str], refused: str | None) -> None:
    looked_at = first(mapping, RECORDS)
    if refused is None:
        looked_at.require_columns()
        return
    with pytest.raises(InvalidRequest) as error:
        looked_at.require_columns()
    assert error.value.detail.startswith(refused)
    assert error.value.problems[0].hint == "support has answer, meta, late"


def test_outputs_that_are_none_are_said_to_be_none() -> None:
    assert to_row({"output": 1, "a": 2}, Mapping.parse(["outputs=none"])).outputs is None
    assert to_row({"none": 1}, Mapping.parse(["outputs=none"])).outputs == 1
    assert Mapping.parse(["outputs=none"]).without_outputs


@pytest.mark.parametrize(("field", "meant"), [("output", "outputs"), ("input.a", "inputs.a"), ("Trace", "trace")])
def test_a_field_of_a_near_name_is_answered_with_the_right_one(field: str, meant: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        Mapping.parse([f"{field}=answer"])
    assert str(error.value.problems[0].hint).startswith(f"did you mean {meant}=answer? ")


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ("id question expected answer", "expected"),
        ("frage erwartete_antwort antwort", "erwartete_antwort"),
        ("a b", None),
    ],
)
def test_the_column_of_expected_answers_is_found(columns: str, found: str | None) -> None:
    assert expected_column(columns.split()) == found


def test_columns_are_compared_by_their_values_in_linear_time() -> None:
    # comparing each pair of columns would take half a minute
    names = {f"column {number}": f"value {number}" for number in range(490)}
    truths = {f"gold {number}": f"truth {number}" for number in range(490)}
    rows = [{**names, **truths, "column 7": "truth 9"} for _ in range(100)]
    assert suggest_mapping(tuple(rows[0]), [], rows) == {"outputs": "column 7"}


def test_only_the_first_missing_columns_are_named() -> None:
    columns = {f"c{number}column{number * 7}": 1 for number in range(900)}
    mapping = {f"inputs.a{number}": f"d{number}colmn{number * 5}" for number in range(900)}
    with pytest.raises(InvalidRequest) as error:
        first(mapping, [columns] * 30).require_columns()
    assert len(error.value.problems) == 20
    assert error.value.detail.endswith("; and 880 more columns are missing")
