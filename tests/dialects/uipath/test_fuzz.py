"""Any JSON sent as an eval set or as executions is accepted or refused, and never causes an error in the host."""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.vendors.uipath.eval_set import is_eval_set, items_of, parse_eval_set
from evaluator_host.vendors.uipath.executions import merged, parse_executions
from evaluator_host.vendors.uipath.records import rows_of
from tests.dialects.uipath.eval_sets import DOCUMENTED, REAL
from tests.dialects.uipath.evaluators import FIXTURES
from tests.fuzz.bounds import bounded

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
KEYS = st.sampled_from(["id", "ref", "weight", "evaluatorId", "spans", "attributes", "name"]) | st.text(max_size=3)
VALUES = st.recursive(
    LEAVES | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
TRACES = [json.loads(line) for line in (FIXTURES / "traces.jsonl").read_text("utf-8").splitlines()[:5]]
OUTPUT = json.loads((FIXTURES / "out.json").read_text("utf-8"))
OURS = [{"id": "test-1", "output": {}, "spans": TRACES, "seconds": 1}, {"id": "test-2", "error": {"title": "x"}}]


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every place in a JSON value."""
    found = [way] if way else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, one in inner for place in places(one, (*way, key))]


@st.composite
def changed(draw: st.DrawFn, *bases: Any) -> Any:
    """Return a JSON value in which one or two values were replaced."""
    value = copy.deepcopy(draw(st.sampled_from(bases)))
    for _ in range(draw(st.integers(1, 2))):
        *way, last = draw(st.sampled_from(places(value)))
        place = value
        for key in way:
            place = place[key]
        place[last] = draw(VALUES)
    return value


@bounded(150)
@given(changed(DOCUMENTED, REAL) | VALUES)
def test_any_json_is_an_eval_set_or_refused(value: Any) -> None:
    try:
        found = parse_eval_set(value)
    except InvalidRequest:
        return
    assert is_eval_set(value)
    assert len(found.items) == len(items_of(value)) == len(rows_of(value))


@bounded(150)
@given(changed(OURS, TRACES, OUTPUT) | VALUES)
def test_any_json_is_a_list_of_executions_or_refused(value: Any) -> None:
    try:
        found = merged(parse_executions(value))
    except InvalidRequest:
        return
    assert all(isinstance(one.item, str) for one in found)
