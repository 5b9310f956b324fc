"""Traces in every format are converted to the documented form; no JSON, however odd, raises an error or changes the
caller's object.
"""

import copy
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.engine.contracts.trace_tree import convert

TRACES = Path(__file__).parents[1] / "fixtures" / "traces"


def load(name: str) -> dict[str, Any]:
    return dict(json.loads((TRACES / f"{name}.json").read_text()))


def root_of(trace: dict[str, Any] | None) -> dict[str, Any]:
    """Return the root span of a trace, in the way in which the documented evaluators find it."""
    assert trace is not None
    root = list(trace["spans"].values())[0]  # noqa: RUF015
    assert isinstance(root, dict)
    return root


def unit_of(span: dict[str, Any]) -> dict[str, Any]:
    return dict(span["attributes"]["ag"]["metrics"]["unit"])


@pytest.mark.parametrize("shape", ["agenta_stored", "flat_list", "otlp"])
def test_the_documented_paths_read_alike_in_every_shape(shape: str) -> None:
    given_trace = load(shape)
    before = copy.deepcopy(given_trace)
    trace, notes = convert(given_trace)
    assert given_trace == before
    assert [note.code for note in notes] == ["trace_converted"]

    expected, root = root_of(load("documented")), root_of(trace)
    assert root["name"] == "travel_bot"
    assert root["attributes"]["ag"]["data"]["inputs"] == expected["attributes"]["ag"]["data"]["inputs"]
    assert root["attributes"]["ag"]["data"]["outputs"] == "Lima is in Peru"
    assert unit_of(root)["duration"] == {"total": 1.75}
    assert unit_of(root)["tokens"] == {"prompt": 31, "completion": 9, "total": 40}
    assert unit_of(root)["costs"]["total"] == 0.0004
    chat = next(child for child in root["children"] if child["name"] == "chat_model")
    assert unit_of(chat)["duration"] == {"total": 1.4}
    assert unit_of(chat)["tokens"]["total"] == 40
    assert chat["children"] == []
    assert (trace or {})["trace_id"] == "0af1c2d3e4b5968778695a4b3c2d1e0f"


@pytest.mark.parametrize(
    "trace",
    [
        None, {}, {"spans": {}}, {"spans": None}, {"spans": []}, {"spans": 3}, {"resourceSpans": []}, {"resourceSpans": 1},
        {"spans": {"a": 1}}, {"spans": {"a": {}}}, {"spans": [1, "x"]}, {"traces": {"x": {"span_name": "y"}}},
    ],
)  # fmt: skip
def test_other_shapes_pass_through_untouched(trace: dict[str, Any] | None) -> None:
    same, notes = convert(trace)
    assert same is trace
    assert notes == ()


def test_documented_shape_passes_through_untouched() -> None:
    trace = load("documented")
    same, notes = convert(trace)
    assert same is trace
    assert notes == ()


@pytest.mark.parametrize("shape", ["agenta_stored", "flat_list", "otlp"])
def test_converting_twice_is_converting_once(shape: str) -> None:
    once, _ = convert(load(shape))
    again, notes = convert(once)
    assert again is once
    assert notes == ()


def test_stored_shape_keeps_what_it_has() -> None:
    stored = load("agenta_stored")
    root = stored["spans"]["travel_bot"]
    root["name"] = "mine"
    root["attributes"]["ag"]["metrics"]["unit"] = {"duration": {"total": 9.0, "p50": 1}}
    del root["spans"]["chat_model"]["attributes"]["ag"]["metrics"]["duration"]
    trace, _ = convert(stored)
    added = root_of(trace)
    assert added["name"] == "mine"
    assert added["status_code"] == "STATUS_CODE_UNSET"
    assert unit_of(added)["duration"] == {"total": 9.0, "p50": 1}
    assert unit_of(added)["tokens"]["total"] == 40
    assert [span["span_id"] for span in added["spans"]["lookup"]] == ["11aa22bb33cc44d1", "11aa22bb33cc44d2"]
    assert [child["name"] for child in added["children"]] == ["lookup", "lookup", "chat_model"]
    # the duration is computed from the span's times
    assert unit_of(added["spans"]["chat_model"])["duration"] == {"total": 1.4}


def test_deep_stored_shape_grows_linearly() -> None:
    span: dict[str, Any] = {"span_name": "leaf"}
    for depth in range(60):
        span = {"span_name": f"s{depth}", "spans": {f"s{depth - 1}": span}}
    trace, _ = convert({"spans": {"root": span}})
    assert len(json.dumps(trace)) < 6 * len(json.dumps(span))


def otlp(*spans: dict[str, Any], snake: bool = False) -> dict[str, Any]:
    if snake:
        return {"resource_spans": [{"scope_spans": [{"spans": list(spans)}]}]}
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def attribute(key: str, **value: Any) -> dict[str, Any]:
    return {"key": key, "value": value}


def test_otlp_spellings_ids_and_times() -> None:
    child = {"spanId": "7v4AAAAAAAI=", "parentSpanId": "7v4AAAAAAAE=", "name": "child", "startTimeUnixNano": 1.0e18}
    root = {"span_id": "eefe000000000001", "parent_span_id": "0000000000000000", "name": "root"} | {
        "start_time_unix_nano": "1000000000500000000",
        "end_time_unix_nano": 1000000002000000000,
        "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
    }
    trace, _ = convert(otlp(child, root, snake=True))
    assert list((trace or {})["spans"]) == ["eefe000000000001"]
    found = root_of(trace)
    assert (found["start_time"], found["end_time"]) == ("2001-09-09T01:46:40.500000Z", "2001-09-09T01:46:42.000000Z")
    assert (found["status_code"], found["status_message"]) == ("ERROR", "no")
    assert unit_of(found)["duration"]["total"] == 1.5
    assert [(c["name"], c["span_id"]) for c in found["children"]] == [("child", "eefe000000000002")]


def test_otlp_attribute_values() -> None:
    inner = {"values": [attribute("n", intValue="5"), attribute("l", arrayValue={"values": [{"boolValue": True}]})]}
    attributes = [
        attribute("s", stringValue="x"),
        attribute("i", intValue=3),
        attribute("wide", intValue="9007199254740993"),
        attribute("d", double_value=0.5),
        attribute("b", bytesValue="AA=="),
        attribute("kv", kvlistValue=inner),
        attribute("odd", somethingElse=1),
        attribute("ag.data.inputs", stringValue='{"a": [1]}'),
        attribute("ag.data.outputs", stringValue="70"),
        attribute("ag.metrics.unit.tokens.total", intValue="7"),
        attribute("ag..x", stringValue="kept as it is"),
        attribute("gen_ai.usage.input_tokens", intValue=99),
        {"key": 5, "value": {}},
        "nonsense",
    ]
    span = root_of(convert(otlp({"name": "r", "attributes": attributes}))[0])
    found = span["attributes"]
    assert {k: found[k] for k in ("s", "i", "wide", "d", "b", "odd")} == {
        "s": "x", "i": 3, "wide": 9007199254740993, "d": 0.5, "b": "AA==", "odd": None,
    }  # fmt: skip
    assert found["kv"] == {"n": 5, "l": [True]}
    assert found["ag"]["data"] == {"inputs": {"a": [1]}, "outputs": "70"}
    assert unit_of(span)["tokens"] == {"total": 7}
    assert found["ag..x"] == "kept as it is"


def test_tokens_of_children_add_up_where_a_span_has_none() -> None:
    def call(span_id: str, tokens: int) -> dict[str, Any]:
        usage = [attribute("gen_ai.usage.input_tokens", intValue=tokens), attribute("llm.cost.total", doubleValue=0.25)]
        return {"spanId": span_id, "parentSpanId": "00000000000000b0", "attributes": usage}

    middle = {"spanId": "00000000000000b0", "parentSpanId": "00000000000000a0"}
    trace, _ = convert(
        otlp(call("00000000000000c1", 3), call("00000000000000c2", 4), middle, {"spanId": "00000000000000a0"})
    )
    assert unit_of(root_of(trace)) == {"tokens": {"prompt": 7, "total": 7}, "costs": {"total": 0.5}}


def test_flat_spans_have_tokens_costs_and_times_in_any_unit() -> None:
    usage = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4, "gen_ai.usage.cost": 0.5}
    start = 1_700_000_000
    for unit in (1, 1000, 1_000_000, 1_000_000_000):
        root = {"span_id": "a", "start_time": start * unit, "end_time": (start + 2) * unit, "attributes": {}}
        trace, _ = convert({"spans": [root, {"span_id": "b", "parent_id": "a", "attributes": usage}]})
        assert unit_of(root_of(trace)) == {
            "duration": {"total": 2.0},
            "tokens": {"prompt": 3, "completion": 4, "total": 7},
            "costs": {"total": 0.5},
        }
    assert usage == {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4, "gen_ai.usage.cost": 0.5}


def test_a_flat_list_may_have_spans_as_otlp_writes_them() -> None:
    child = {"spanId": "00000000000000c1", "parentSpanId": "00000000000000a0", "kind": 3} | {
        "attributes": [attribute("gen_ai.usage.input_tokens", intValue="5")]
    }
    root = {
        "spanId": "00000000000000a0",
        "startTimeUnixNano": "1000000000500000000",
        "endTimeUnixNano": "1000000002000000000",
    }
    trace, _ = convert({"spans": [child, root]})
    found = root_of(trace)
    assert unit_of(found) == {"duration": {"total": 1.5}, "tokens": {"prompt": 5, "total": 5}}
    assert [(one["kind"], one["attributes"]["gen_ai.usage.input_tokens"]) for one in found["children"]] == [(3, 5)]


def test_a_span_that_an_exporter_sent_twice_counts_once() -> None:
    usage = [attribute("gen_ai.usage.input_tokens", intValue=5)]
    child = {"spanId": "00000000000000c1", "parentSpanId": "00000000000000a0", "attributes": usage}
    sent = otlp(child, {"spanId": "00000000000000a0", "name": "root"})
    trace, _ = convert({"resourceSpans": sent["resourceSpans"] * 2})
    assert trace is not None
    (root,) = trace["spans"].values()
    assert (len(root["children"]), unit_of(root)["tokens"]) == (1, {"prompt": 5, "total": 5})
    other = {**child, "name": "another with its id"}
    kept, _ = convert(otlp(child, other, {"spanId": "00000000000000a0"}))
    assert len(root_of(kept)["children"]) == 2


def names_of(span: dict[str, Any]) -> list[str]:
    return [span["name"], *(name for child in span["children"] for name in names_of(child))]


@pytest.mark.parametrize(
    "links",
    [
        {"a": "a"},
        {"a": "b", "b": "a"},
        {"a": "b", "b": "c", "c": "a", "d": "c"},
        {"a": None, "b": "missing", "c": "b"},
        {"a": None, "b": None, "c": "b"},
        {str(i): str(i - 1) if i else None for i in range(500)},
        {str(i): str((i + 1) % 300) for i in range(300)},
    ],
)
def test_every_span_comes_out_once_whatever_the_parents_say(links: dict[str, str | None]) -> None:
    trace, _ = convert({"spans": [{"span_id": k, "parent_id": p, "span_name": k} for k, p in links.items()]})
    assert trace is not None
    found = [name for root in trace["spans"].values() for name in names_of(root)]
    assert sorted(found) == sorted(links)
    orjson.dumps(trace)  # the trace must not be nested too deeply for an encoder


def test_a_span_without_parent_comes_before_an_orphan() -> None:
    orphan = {"span_id": "o", "parent_id": "lost", "span_name": "orphan", "start_time": "2026-01-01T00:00:00Z"}
    root = {"span_id": "r", "span_name": "root", "start_time": "2026-01-01T00:00:01Z"}
    assert root_of(convert({"spans": [orphan, root]})[0])["name"] == "root"


def test_equal_ids_are_kept_apart() -> None:
    trace, _ = convert({"spans": [{"span_id": "x", "span_name": str(i)} for i in range(4)]})
    assert sorted(span["name"] for span in (trace or {})["spans"].values()) == ["0", "1", "2", "3"]


KEYS = st.sampled_from(
    [
        "spans", "span_id", "spanId", "parent_id", "parentSpanId", "span_name", "name", "attributes", "ag",
        "metrics", "unit", "duration", "cumulative", "tokens", "costs", "total", "data", "inputs", "ag.data.inputs",
        "ag.metrics.unit.tokens", "resourceSpans", "resource_spans", "scopeSpans", "key", "value", "stringValue",
        "intValue", "arrayValue", "values", "kvlistValue", "startTimeUnixNano", "endTimeUnixNano", "start_time",
        "end_time", "status", "code", "children", "x",
    ]
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(2**70), 1.7e18, 1e308])
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(
        ["a", "b", "0000000000000001", "AAAAAAAAAAE=", "1700000000000000000", "2026-01-01T00:00:00Z", "{}"]
    )
    | st.sampled_from(
        ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01", "[[1]]", '"x"', "ag.a.b"]
    )
)
ANY_JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5))


def otlp_around(spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


SPANS = st.lists(st.dictionaries(KEYS, ANY_JSON, max_size=8), max_size=6)
TRACES_OF_ANY_KIND = (
    st.dictionaries(KEYS, ANY_JSON, max_size=4)
    | st.builds(otlp_around, SPANS)
    | st.fixed_dictionaries({"spans": SPANS | st.dictionaries(KEYS, SPANS | ANY_JSON, max_size=3)})
)


@given(TRACES_OF_ANY_KIND)
@pytest.mark.slow
def test_no_json_is_an_error_or_is_changed(trace: dict[str, Any]) -> None:
    before = repr(trace)
    converted, notes = convert(trace)
    assert repr(trace) == before
    assert converted is trace or [note.code for note in notes] == ["trace_converted"]


@pytest.mark.parametrize("odd", ["x\nERROR forged", "\x1b[2J", "y" * 65, "\ud800"])
def test_an_odd_id_becomes_a_hash_that_still_links_spans(odd: str) -> None:
    spans = [{"spanId": odd, "name": "root"}, {"spanId": "b", "parentSpanId": odd, "name": "step"}]
    trace, _ = convert({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    root = root_of(trace)
    assert len(root["span_id"]) == 32
    assert [child["parent_id"] for child in root["children"]] == [root["span_id"]]
