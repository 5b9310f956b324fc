"""The host reads spans for UiPath's evaluators from traces in every format."""

import base64
from typing import Any

import pytest

from evaluator_host.vendors.uipath.spans import NotATrace, read_spans

START = 1_700_000_000_000_000_000
EXPECTED = {
    "name": "call",
    "trace_id": "7c34467a7afc31f08315484b30daf158",
    "span_id": "1f3da7f196666206",
    "parent_id": "890f35635c42bd8e",
    "attributes": {"tool.name": "T", "n": 1},
    "events": [{"name": "e", "attributes": {"a": True}, "timestamp": START}],
    "status": 2,
    "status_message": "no",
    "start_time": START,
    "end_time": START + 1_500_000,
    "kind": 2,
}
EVENT = {"name": "e", "attributes": {"a": True}}
STORED = {
    "name": "call",
    "context": {"trace_id": int(EXPECTED["trace_id"], 16), "span_id": int("1f3da7f196666206", 16), "trace_flags": 1},
    "parent": {"trace_id": int(EXPECTED["trace_id"], 16), "span_id": int("890f35635c42bd8e", 16), "trace_flags": 1},
    "attributes": EXPECTED["attributes"],
    "events": [{**EVENT, "timestamp": START}],
    "status_code": 2,
    "status_description": "no",
    "start_time": START,
    "end_time": START + 1_500_000,
    "kind": 2,
}
WRITTEN = {
    "name": "call",
    "context": {"trace_id": f"0x{EXPECTED['trace_id']}", "span_id": "0x1f3da7f196666206", "trace_state": "[]"},
    "kind": "SpanKind.CLIENT",
    "parent_id": "0x890f35635c42bd8e",
    "start_time": "2023-11-14T22:13:20.000000Z",
    "end_time": "2023-11-14T22:13:20.001500Z",
    "status": {"status_code": "ERROR", "description": "no"},
    "attributes": EXPECTED["attributes"],
    "events": [{**EVENT, "timestamp": "2023-11-14T22:13:20Z"}],
    "links": [],
    "resource": {"attributes": {}},
}
EXPORTED = {
    "name": "call",
    "traceId": EXPECTED["trace_id"].upper(),
    "spanId": base64.b64encode(bytes.fromhex("1f3da7f196666206")).decode(),
    "parentSpanId": "890f35635c42bd8e",
    "kind": 3,
    "startTimeUnixNano": str(START),
    "endTimeUnixNano": START + 1_500_000,
    "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
    "attributes": [
        {"key": "tool.name", "value": {"stringValue": "T"}},
        {"key": "n", "value": {"intValue": "1"}},
    ],
    "events": [
        {"name": "e", "timeUnixNano": str(START), "attributes": [{"key": "a", "value": {"boolValue": True}}]},
    ],
}


@pytest.mark.parametrize(
    "trace",
    [
        {"spans": [STORED]},
        {"spans": [WRITTEN]},
        {"spans": [EXPORTED]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [EXPORTED]}]}]},
    ],
    ids=["stored", "written", "flat", "exported"],
)
def test_every_shape_comes_to_the_same_spans(trace: dict[str, Any]) -> None:
    assert read_spans(trace) == [EXPECTED]


def test_a_tree_is_read_parents_first_and_its_tools_are_named() -> None:
    ag = {"type": {"span": "tool"}, "data": {"inputs": {"city": "Rome"}, "outputs": "sunny"}}
    tree = {
        "spans": {
            "a1": {"name": "root", "children": [{"name": "weather", "attributes": {"ag": ag}}, {"name": "last"}]},
            "b2": {"spans": {"inner": [{"span_id": "c3"}, {"span_id": "c4"}]}},
        }
    }
    spans = read_spans(tree)
    assert [span["name"] for span in spans] == ["root", "weather", "last", "b2", "inner", "inner"]
    assert [span["span_id"] for span in spans] == ["a1", "2", "3", "b2", "c3", "c4"]
    tool = {"tool.name": "weather", "input.value": {"city": "Rome"}, "output.value": "sunny", "ag": ag}
    assert spans[1]["attributes"] == tool


def test_ids_in_words_of_their_own_are_numbers_that_parents_share() -> None:
    root, child = read_spans({"spans": [{"name": "r", "id": "root span"}, {"name": "c", "parent_id": "root span"}]})
    assert child["parent_id"] == root["span_id"]
    assert 0 < int(root["span_id"], 16) < 2**64


@pytest.mark.parametrize("trace", [None, {}, {"spans": []}, {"spans": {}}, {"resourceSpans": []}])
def test_a_trace_without_spans_is_not_an_error(trace: Any) -> None:
    assert read_spans(trace) == []


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ([], "the trace is a list, not an object"),
        ({"steps": []}, "the trace has neither `spans` nor `resourceSpans`, only steps"),
        ({"spans": "x"}, "trace.spans is a str, neither a list nor an object of spans"),
        ({"spans": [{"attributes": {}}]}, "trace.spans[0] has no name, so it is not a span"),
        ({"spans": [{"name": "a", "children": [None]}]}, "trace.spans[0].children[0] is null, not a span"),
        ({"spans": [{"name": "a", "events": ["x"]}]}, "trace.spans[0].events holds a str, not an event"),
        ({"spans": [{"name": "a", "events": 3}]}, "trace.spans[0].events is an int, not a list"),
    ],
)
def test_a_value_that_is_not_a_trace_is_reported_with_its_place(trace: Any, message: str) -> None:
    with pytest.raises(NotATrace) as refused:
        read_spans(trace)
    assert str(refused.value) == message


def test_fields_with_invalid_values_count_as_missing() -> None:
    odd = {"kind": True, "status_code": True, "start_time": True, "end_time": "soon", "attributes": [3], "context": "c"}
    (span,) = read_spans({"spans": [{"name": "s", "parent": 3, "trace_id": -1, **odd}]})
    assert (span["kind"], span["status"], span["start_time"], span["end_time"]) == (0, 0, None, None)
    assert all(type(span[field]) is int for field in ("kind", "status"))
    assert (span["attributes"], span["trace_id"], span["span_id"], span["parent_id"]) == ({}, "0", "1", None)


def test_a_span_that_an_exporter_sent_twice_is_read_once() -> None:
    sent = {"resourceSpans": [{"scopeSpans": [{"spans": [EXPORTED, dict(EXPORTED)]}]}]}
    assert read_spans(sent) == [EXPECTED]


def test_spans_below_spans_have_an_end() -> None:
    span: dict[str, Any] = {"name": "leaf"}
    for _ in range(100):
        span = {"name": "above", "children": [span]}
    with pytest.raises(NotATrace, match="has spans nested more than 64 levels deep"):
        read_spans({"spans": [span]})
