"""Every place that accepts traces also accepts a flat list of spans, and converts it to an object with these spans."""

import pytest

from evaluator_host.engine.contracts.trace_tree import convert, has_more_spans
from evaluator_host.platform.datasets.mapping import Mapping, to_row
from evaluator_host.platform.evaluators.bodies import RowIn

SPANS = [{"name": "a", "span_id": "1"}, {"name": "b", "span_id": "2", "parent_span_id": "1"}]


def test_a_body_takes_a_list() -> None:
    assert RowIn.model_validate({"trace": SPANS}).to_row().trace == {"spans": SPANS}


def test_a_list_of_a_large_body_is_converted() -> None:
    converted, notes = convert(SPANS)
    assert converted is not None
    assert [span["name"] for span in converted["spans"].values()] == ["a"]
    assert [note.code for note in notes] == ["trace_converted"]
    assert has_more_spans(SPANS, 1)
    assert not has_more_spans(SPANS, 2)


def test_a_column_of_a_data_set_holds_a_list() -> None:
    assert to_row({"inputs": {}, "outputs": "x", "trace": SPANS}, Mapping()).trace == {"spans": SPANS}


def test_a_list_of_something_else_raises_nothing() -> None:
    assert convert([1, "two"]) == ({"spans": [1, "two"]}, ())


@pytest.mark.parametrize("trace", [{"other": 1}, {}, None])
def test_other_traces_are_as_before(trace: object) -> None:
    assert convert(trace) == (trace, ())
