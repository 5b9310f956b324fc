"""No trace, returned value or pasted code, however odd, raises an exception when the host converts or cleans it."""

import copy
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluator_host.engine.contracts import trace_tree as trace
from evaluator_host.engine.service.source import clean
from evaluator_host.types.evaluator import Language
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.outcome import Kind, Logs, Note, Returned, Status
from tests.fuzz.bounds import JSON, LEAVES, LONG, TEXT, bounded, nested
from tests.unit.normalising import ALL, JS, PY, result

ANY = st.recursive(
    LEAVES | LONG, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=25
)
IDS = st.sampled_from(["a", "b", "c", "", "ff"]) | JSON
TIMES = st.sampled_from(["1", "1700000000000000000", "2024-01-01T00:00:00Z", "x", "-1"]) | LONG | JSON
SPAN_KEYS = {
    "spanId": IDS, "span_id": IDS, "parentSpanId": IDS, "parent_id": IDS, "traceId": IDS, "name": JSON, "startTimeUnixNano": TIMES,
    "endTimeUnixNano": TIMES, "start_time": TIMES, "end_time": TIMES, "status": JSON, "events": JSON, "children": JSON,
    "metrics": JSON | st.fixed_dictionaries({"duration": JSON | st.fixed_dictionaries({"cumulative": LONG | JSON})}),
    "attributes": JSON | st.lists(st.fixed_dictionaries({"key": TEXT, "value": JSON | st.dictionaries(
        st.sampled_from(["stringValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "boolValue"]), JSON, max_size=2)}), max_size=4),
}  # fmt: skip
SPANS = st.lists(st.fixed_dictionaries({}, optional=SPAN_KEYS) | JSON, max_size=5)
TRACES = st.one_of(
    st.dictionaries(TEXT, JSON, max_size=3),
    st.fixed_dictionaries({"spans": SPANS | st.dictionaries(TEXT, st.fixed_dictionaries({}, optional=SPAN_KEYS) | JSON, max_size=4)}),
    st.fixed_dictionaries({"resourceSpans": JSON | st.lists(st.fixed_dictionaries(
        {"scopeSpans": JSON | st.lists(st.fixed_dictionaries({"spans": SPANS}), max_size=2)}), max_size=2)}),
)  # fmt: skip


@pytest.mark.long
@bounded(200)
@given(given_trace=TRACES)
@example(given_trace={"spans": nested(300, {}, key="children")})
@example(given_trace={"spans": {"a": nested(400, {}, key="spans")}})
@example(given_trace={"spans": [{"span_id": "a", "parent_id": "b"}, {"span_id": "b", "parent_id": "a"}]})
def test_any_trace_is_converted_or_left_alone(given_trace: dict[str, Any]) -> None:
    before = copy.deepcopy(given_trace)
    converted, notes = trace.convert(given_trace)
    assert repr(given_trace) == repr(before)
    assert isinstance(converted, dict)
    assert [note.code for note in notes] in ([], ["trace_converted"])
    assert notes or converted is given_trace
    if "spans" in converted:
        encode_json(converted)


KINDS = st.sampled_from(list(Kind))
RETURNED = st.builds(
    Returned,
    kind=KINDS,
    value=ANY
    | st.dictionaries(
        st.sampled_from(["score", "passed", "success", "label", "reason", "details", "x"]), ANY, max_size=5
    ),
    nonfinite=st.lists(TEXT, max_size=3).map(tuple),
    unsupported=st.none() | st.tuples(TEXT, TEXT),
    notes=st.lists(st.builds(Note, TEXT, TEXT), max_size=2).map(tuple),
    logs=st.just(Logs()),
)


@bounded(800)
@given(
    outcome=RETURNED,
    contract=st.sampled_from(ALL),
    language=st.sampled_from([PY, JS]),
    threshold=st.none() | st.floats(0, 1),
)
@example(outcome=Returned(Kind.NUMBER, 10**400), contract=ALL[0], language=PY, threshold=0.5)
@example(outcome=Returned(Kind.OBJECT, nested(200, 1, key="a")), contract=ALL[0], language=PY, threshold=None)
@example(outcome=Returned(Kind.STRING, "9" * 5000), contract=ALL[1], language=PY, threshold=None)
@example(outcome=Returned(Kind.STRING, nested(5, 1)), contract=ALL[2], language=JS, threshold=None)
def test_any_returned_value_becomes_a_result(
    outcome: Returned, contract: Any, language: Any, threshold: float | None
) -> None:
    found = result(outcome, contract, language, threshold=threshold)
    if found.status is Status.SCORED:
        assert found.error is None
        numbers = [*found.metrics.values(), *([found.score] if found.score is not None else [])]
        assert all(not isinstance(one, bool) and math.isfinite(one) for one in numbers)
    else:
        skipped = found.status is Status.SKIPPED  # `{"score": None}` gives a warning instead of an error
        assert [one.code for one in found.warnings].count("no_score") == 1 if skipped else found.error is not None
        assert found.score is None
    assert decode_json(encode_json(found.metrics)) is not None


CODE = st.lists(
    TEXT | st.sampled_from(["def f():", "    return 1", "\t", "```", "```python", "~~~", "1 import os", "2| x", "10", "#!/bin/sh", "\ufeff",
                            "\u00a0x", "\u200b", "\x0c", "'''", '"""', "  1  x = 1", "\x00", "\u2028", "\x85", "\x1c"]),
    max_size=12,
)  # fmt: skip


@bounded(500)
@given(lines=CODE, end=st.sampled_from(["\n", "\r\n", "\r"]), language=st.sampled_from(list(Language)))
def test_any_pasted_text_keeps_its_lines_and_is_clean_when_cleaned(
    lines: list[str], end: str, language: Language
) -> None:
    code = end.join(lines)
    cleaned = clean(code, language)
    text = code.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    assert cleaned.code.count("\n") == text.count("\n")
    assert "\r" not in cleaned.code
    cleaned.code.encode()
    for line in (None, 0, 1, len(lines), 10**9):
        cleaned.to_user(line, 1)
