"""In a sandbox, UiPath's evaluators read traces and functions write traces; the spans equal the recorded golden spans."""

import json
from typing import Any

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Row
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.uipath.evaluators import GOLDEN, PATTERN_SPAN, evaluator

pytestmark = ON_BUBBLEWRAP
HELPERS = "from uipath.eval._helpers.evaluators_helpers import *\nimport json\nimport uipath.eval._helpers.evaluators_helpers as helpers\n"
NAMES = ("extract_tool_calls", "extract_tool_calls_names", "extract_tool_calls_outputs")
SHAPES: dict[str, dict[str, Any] | None] = {
    "json_args": {"tool.name": "A", "input.value": '{"x": true, "y": null}', "output.value": '{"content": "hi"}'},
    "python_literal_args": {"tool.name": "B", "input.value": "{'x': 1, 'y': None}", "output.value": "plain"},
    "invalid_args": {"tool.name": "C", "input.value": "not args", "output.value": '{"other": 1}'},
    "list_args": {"tool.name": "D", "input.value": "[1, 2]", "output.value": "[1,2]"},
    "dict_args": {"tool.name": "E", "input.value": {"k": "v"}, "output.value": {"content": "c"}},
    "no_args_no_output": {"tool.name": "F"},
    "number_output": {"tool.name": "G", "output.value": 5},
    "json_scalar_output": {"tool.name": "H", "output.value": "5"},
    "content_not_str": {"tool.name": "I", "output.value": '{"content": {"a": 1}}'},
    "content_empty": {"tool.name": "J", "output.value": '{"content": ""}'},
    "synthesized": {"tool.name": "K", "tool.synthesized": True},
    "empty_tool_name": {"tool.name": ""},
    "no_tool_name": {"input.value": "{}"},
    "with_id": {"tool.name": "L", "tool.id": 7},
    "none_attrs": None,
}
# for each shape of spans: the results of release 2.14 where they differ from the golden file, which release 2.7 made
SINCE: dict[str, dict[str, Any]] = {
    "json_args": {"extract_tool_calls": [{"name": "A", "args": {"x": True, "y": None}}]},
    "synthesized": {name: [] for name in NAMES},
}


async def details(service: Service, code: str, row: Row) -> Any:
    result = await service.evaluate(Evaluator(HELPERS + code), row)
    assert result.error is None, result.error
    return result.value["details"]


async def test_tools_are_read_from_spans_as_the_golden_has_them(service: Service) -> None:
    code = evaluator(
        """
        told = {name: [one if type(one) is str else one.model_dump() for one in getattr(helpers, name)(execution.agent_trace)]
                for name in ("extract_tool_calls", "extract_tool_calls_names", "extract_tool_calls_outputs")}
        told["bare"] = [call.args for call in extract_tool_calls(execution.agent_trace, include_args=False)]
        return NumericEvaluationResult(score=1, details=told)
        """
    )
    for shape, attributes in SHAPES.items():
        row = Row(trace={"spans": [{"name": "any", "attributes": attributes}]}, criteria={"text": "x"})
        told = await details(service, code, row)
        golden = {**GOLDEN["helpers"][shape], **SINCE.get(shape, {})}
        identity = str(attributes["tool.id"]) if attributes and "tool.id" in attributes else None
        for name in NAMES:
            expected = [one if isinstance(one, str) else {**one, "id": identity} for one in golden[name]]
            assert told[name] == expected, (shape, name)
        assert told["bare"] == [{} for _ in golden["extract_tool_calls"]]


async def test_the_order_of_calls_is_that_of_the_spans_and_their_story_is_the_golden_one(service: Service) -> None:
    code = evaluator(
        "return NumericEvaluationResult(score=1, details={'order': extract_tool_calls_names(execution.agent_trace),"
        " 'story': trace_to_str(execution.agent_trace[:2])})"
    )
    spans = [{"name": "any", "attributes": attributes} for attributes in SHAPES.values()]
    twice = {**PATTERN_SPAN, "span_id": "00000000000000aa"}
    row = Row(trace={"spans": [twice, twice, *spans]}, criteria={"text": "x"})
    told = await details(service, code, row)
    assert told["order"][2:] == [name for name in GOLDEN["extract_order_all"] if name != "K"]
    assert told["story"] == GOLDEN["trace_to_str"]


TRACED = """
from opentelemetry import trace
from pydantic import BaseModel
from uipath.tracing import traced
from uipath.eval._host import recorded_spans

class Model(BaseModel):
    a: int = 1

@traced(span_type="tool")
def weather(city, unit="C", **more):
    return {"content": f"{city} {unit}"}

@traced
def bare(model):
    return model

@traced(name="called", run_type="kind", hide_input=True, hide_output=True)
async def later(x):
    return {1, 2}

@traced()
def counted(n):
    yield from range(n)

@traced(span_type="TOOL")
def broken(x):
    raise ValueError("no")

@traced(recording=False)
def quiet():
    return bare(Model())

@traced(input_processor=lambda given: {**given, "z": 1}, output_processor=lambda outcome: [outcome])
def processed(self, x):
    return x

async def agent():
    with trace.get_tracer("agent").start_as_current_span("root"):
        weather("Rome", more=1), bare(Model()), await later(1), list(counted(2)), quiet(), processed(None, 3)
        try:
            broken(4)
        except ValueError:
            pass
    return recorded_spans()
"""


async def test_traced_functions_leave_the_spans_that_evaluators_read(service: Service) -> None:
    code = TRACED + evaluator(
        "return NumericEvaluationResult(score=len(recorded_spans()), details={'spans': await agent()})"
    )
    spans = (await details(service, code, Row(criteria={"text": "x"})))["spans"]
    assert [span["name"] for span in spans] == [
        "weather", "bare", "called", "counted", "processed", "broken", "root"
    ]  # fmt: skip
    root = spans[-1]["context"]["span_id"]
    assert [span["parent"] and span["parent"]["span_id"] for span in spans] == [root] * 6 + [None]
    held = {span["name"]: span["attributes"] for span in spans}
    mime = {"input.mime_type": "application/json", "output.mime_type": "application/json"}
    assert held["weather"] == {
        "openinference.span.kind": "TOOL", "tool.name": "weather", "span_type": "TOOL", **mime,
        "input.value": '{"city": "Rome", "unit": "C", "more": 1}', "output.value": '{"content": "Rome C"}',
    }  # fmt: skip
    assert (held["bare"]["input.value"], held["bare"]["output.value"]) == ('{"model": {"a": 1}}', '{"a": 1}')
    assert (held["called"]["run_type"], "1" in held["called"]["input.value"]) == ("kind", False)
    assert "2" not in held["called"]["output.value"]
    assert [event["name"] for event in spans[3]["events"]] == ["Yielded: 0", "Yielded: 1"]
    assert (held["processed"]["input.value"], held["processed"]["output.value"]) == ('{"x": 3, "z": 1}', "[3]")
    assert (spans[5]["status_code"], spans[5]["status_description"], "output.value" in held["broken"]) == (
        2,
        "no",
        False,
    )
    assert [span["attributes"].get("span_type") for span in spans[1:4]] == [
        "function_call_sync", "function_call_async", "function_call_generator_sync"
    ]  # fmt: skip

    again = Row(trace=json.loads(json.dumps({"spans": spans})), criteria={"text": "x"})
    names = evaluator(
        "return NumericEvaluationResult(score=1, details=','.join(extract_tool_calls_names(execution.agent_trace)))"
    )
    assert await details(service, names, again) == "weather,broken"


async def test_rows_find_everything_imported(service: Service) -> None:
    body = "return NumericEvaluationResult(score=1, details={'new': sorted(set(sys.modules) - KNOWN)})"
    code = evaluator(body) + "\nimport sys\nKNOWN = set(sys.modules)\n"
    row = Row(trace={"spans": [PATTERN_SPAN]}, criteria={"text": "x"})
    assert await details(service, code, row) == {"new": []}, (
        "a row must not import modules, which it would do if its spans had no resource of their own"
    )
