"""Rows of other platforms: the platform's own row or the fields of the object in it, and never one mistaken for the
other."""

from typing import Any

import pytest

from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.types.evaluator import Contract, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError

FIELDS = {
    "opik": ("data", {"output": "a", "reference": "b"}, {}),
    "weave": ("example", {"expected": "b"}, {"output": "a"}),
    "deepeval": ("test_case", {"input": "q", "actual_output": "a"}, {}),
    "patronus": ("row", {"task_output": "a", "gold_answer": "b"}, {}),
}


def bound(contract: str, variables: dict[str, Any]) -> Any:
    found = dialect_of(Contract(contract)).bind(Row(variables=variables), DEFAULTS)
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
    assert f"as the platform's row, which keeps its fields in {inner!r} and knows no 'further'" in error.message
    assert "or as the fields themselves" in error.message
    assert error.hint is not None
    assert f"put 'further' into {inner!r}" in error.hint


def test_an_instance_may_be_sent_as_the_platform_does() -> None:
    instance = {"response": {"text": "a"}, "reference": {"text": "b"}}
    assert bound("vertex", instance) == bound("vertex", {"instance": instance}) == instance
    assert isinstance(bound("vertex", {"instance": instance, "reference": "c"}), EvaluationError)
