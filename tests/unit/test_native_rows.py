"""A row for another platform may contain the platform's object in a field, or only the fields of that object. The host
accepts both forms, and never confuses them.
"""

from typing import Any

import pytest

from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.platform.datasets.mapping import Mapping, to_row
from evaluator_host.types.evaluator import Contract, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError

FIELDS = {
    "opik": ("data", {"output": "a", "reference": "b"}, {}),
    "weave": ("example", {"expected": "b"}, {"output": "a"}),
    "deepeval": ("test_case", {"input": "q", "actual_output": "a"}, {}),
    "patronus": ("row", {"task_output": "a", "gold_answer": "b"}, {}),
}


def bound(contract: str, variables: dict[str, Any]) -> Any:
    return given(contract, Row(variables=variables))


def given(contract: str, row: Row) -> Any:
    found = dialect_of(Contract(contract)).bind(row, DEFAULTS)
    if isinstance(found, EvaluationError):
        return found
    assert isinstance(found, Binding)
    assert isinstance(found.body, dict)
    [native] = found.body["args"]
    return native


@pytest.mark.parametrize("contract", FIELDS)
def test_a_row_may_be_the_platforms_or_the_fields_of_its_object(contract: str) -> None:
    inner, fields, outer = FIELDS[contract]
    platforms = {inner: fields, **outer}
    assert bound(contract, platforms) == platforms
    flat = bound(contract, {**fields, **outer})
    assert {**flat[inner], **outer} == {**fields, **outer}
    assert {name: flat[name] for name in outer} == outer


@pytest.mark.parametrize("contract", FIELDS)
def test_a_field_that_is_called_like_the_object_is_a_field(contract: str) -> None:
    inner, fields, outer = FIELDS[contract]
    assert bound(contract, {**fields, **outer, inner: "text"})[inner][inner] == "text"


@pytest.mark.parametrize("contract", FIELDS)
def test_fields_beside_the_object_are_an_error_that_names_both_readings(contract: str) -> None:
    inner, fields, outer = FIELDS[contract]
    error = bound(contract, {inner: fields, **outer, "further": 1})
    assert isinstance(error, EvaluationError)
    assert error.code is ErrorCode.BINDING_ERROR
    assert f"the platform's row, which has all fields in {inner!r} and no 'further'" in error.message
    assert f"or as the fields themselves, of which {inner!r} is one" in error.message
    assert error.hint is not None
    assert f"put 'further' into {inner!r}" in error.hint


COLUMNS = {"input": {"q": "2+2"}, "output": "4", "metadata": {"lang": "en"}}
FLAT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "braintrust": ({**COLUMNS, "expected": "5"}, {**COLUMNS, "expected": "5"}),
    "phoenix": ({**COLUMNS, "expected": "5"}, {**COLUMNS, "expected": "5", "reference": "5"}),
    "langfuse": (
        {**COLUMNS, "expected_output": "5"},
        {
            "observation": {**COLUMNS, "toolCalls": []},
            "experiment": {"itemExpectedOutput": "5", "itemMetadata": None},
        },
    ),
}


@pytest.mark.parametrize("contract", FLAT)
def test_columns_with_the_platforms_names_arrive_as_themselves(contract: str) -> None:
    columns, native = FLAT[contract]
    assert given(contract, to_row(columns, Mapping())) == native
    further = given(contract, to_row({**columns, "difficulty": 3}, Mapping()))
    assert {name: further[name] for name in native} == native


def test_an_item_and_its_sample_arrive_as_themselves() -> None:
    pair = {"item": {"reference": "4"}, "sample": {"output_text": "4"}}
    assert given("openai-grader", to_row(pair, Mapping())) == pair


@pytest.mark.parametrize("contract", ["braintrust", "phoenix"])
def test_an_input_among_other_columns_is_one_of_them(contract: str) -> None:
    for inputs in ({"input": "2+2"}, {"input": "2+2", "context": "sums"}):
        assert given(contract, Row(inputs, "4"))["input"] == inputs


def test_a_truth_that_is_missing_is_not_null() -> None:
    assert "expected" not in given("braintrust", to_row(COLUMNS, Mapping()))
    assert given("braintrust", to_row({**COLUMNS, "expected": None}, Mapping()))["expected"] is None


def test_a_truth_that_is_mapped_comes_before_the_column() -> None:
    row = to_row({**COLUMNS, "expected": "5", "gold": "4"}, Mapping((("inputs.correct_answer", "gold"),)))
    assert given("braintrust", row)["expected"] == "4"


def test_an_instance_may_be_sent_as_the_platform_does() -> None:
    instance = {"response": {"text": "a"}, "reference": {"text": "b"}}
    assert bound("vertex", instance) == bound("vertex", {"instance": instance}) == instance
    assert isinstance(bound("vertex", {"instance": instance, "reference": "c"}), EvaluationError)


@pytest.mark.parametrize(
    ("contract", "beside", "found", "truth"),
    [
        ("langsmith", {"reference_outputs": {"answer": "b"}}, ("example", "outputs"), {"answer": "b"}),
        ("langsmith", {"referenceOutputs": "b"}, ("example", "outputs"), {"output": "b"}),
        ("honeyhive", {"ground_truth": "b"}, ("ground_truth",), "b"),
        ("honeyhive", {"ground_truths": ["b"]}, ("ground_truth",), ["b"]),
        ("mlflow", {"expectations": {"facts": ["b"]}}, ("expectations",), {"facts": ["b"]}),
        ("mlflow", {"expected_response": "b"}, ("expectations", "expected_response"), "b"),
        ("langfuse", {"expectedOutput": "b"}, ("experiment", "itemExpectedOutput"), "b"),
        ("braintrust", {"expected": "b"}, ("expected",), "b"),
        ("ragas", {"reference": "b"}, ("reference",), "b"),
    ],
)
def test_an_expected_answer_beside_the_inputs_arrives(
    contract: str, beside: dict[str, Any], found: tuple[str, ...], truth: Any
) -> None:
    native = given(contract, to_row({"inputs": {"question": "q"}, "outputs": "a", **beside}, Mapping()))
    for key in found:
        native = native[key]
    assert native == truth


def test_an_expected_answer_among_the_inputs_comes_before_one_beside_them() -> None:
    record = {"inputs": {"expected": "a"}, "outputs": "a", "ground_truth": "b"}
    assert to_row(record, Mapping()).inputs == {"expected": "a"}
    mapped = to_row({**record, "inputs": {}}, Mapping.parse(["correct_answer=ground_truth"])).inputs
    assert mapped == {"ground_truth": "b", "correct_answer": "b"}
    assert to_row({"variables": {"inputs": {}}, "expected": "b"}, Mapping()).inputs == {}
