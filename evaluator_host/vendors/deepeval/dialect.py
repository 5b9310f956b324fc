"""Arguments and results of DeepEval's metrics (dialect `deepeval`), which set score, reason and success.

The runner sends `{"metric": {"name", "score", "threshold", "success", "reason", "error"}, "raised": {"type", "message",
"line"} | null, "skipped"}`. Source of the rules: deepeval 4.3.1, metrics/indicator.py, evaluate/utils.py.
"""

from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    question,
    scored,
    text_of,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Note, Returned
from evaluator_host.types.warnings import WarningKind

_PASSED_ON: Final = ("context", "retrieval_context", "tools_called", "expected_tools", "metadata")


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return `{"test_case": …}`: the row's `variables`, or a test case made from the row's other fields."""
    return bind_native(row, settings, _case, needs="test_case", inner="test_case")


def _case(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    case: dict[str, Json] = {name: inputs[name] for name in _PASSED_ON if name in inputs}
    asked = question({name: value for name, value in inputs.items() if name not in _PASSED_ON})
    case |= {"input": text_of(asked), "actual_output": text_of(row.outputs)}
    if inputs is not row.inputs:
        case["expected_output"] = text_of(truth)
    if (messages := messages_of(row)) is not None:
        case["turns"] = _turns(messages)
    return {"test_case": case}


def _turns(messages: list[Json]) -> list[Json]:
    """Convert messages to turns of user and assistant; tool calls and their results join the assistant's turns."""
    turns: list[Json] = []
    calls: dict[str, dict[str, Json]] = {}
    for message in messages:
        if not isinstance(message, dict):
            continue
        role, content = message.get("role"), message.get("content")
        if role == "tool" and message.get("tool_call_id") in calls:
            calls[message["tool_call_id"]]["output"] = content
        if role not in ("user", "assistant"):
            continue
        turn: dict[str, Json] = {**message, "content": "" if content is None else text_of(content)}
        asked = turn.pop("tool_calls", None)
        if isinstance(asked, list) and "tools_called" not in turn:
            turn["tools_called"] = [_call(one, calls) for one in asked if isinstance(one, dict)]
        turns.append(turn)
    return turns


def _call(one: dict[str, Json], calls: dict[str, dict[str, Json]]) -> dict[str, Json]:
    function = one["function"] if isinstance(one.get("function"), dict) else one
    arguments = function.get("arguments", function.get("args"))
    if isinstance(arguments, str):
        try:
            arguments = decode_json(arguments.encode())
        except InvalidJson:
            arguments = {"arguments": arguments}
    call: dict[str, Json] = {"name": function.get("name"), "input_parameters": arguments}
    calls[str(one.get("id"))] = call
    return call


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the attributes `score`, `reason` and `success` that the metric has set; an exception fails the row."""
    if (error := unreadable(returned)) is not None:
        return error
    found = returned.value if isinstance(returned.value, dict) else {}
    metric, raised = found.get("metric"), found.get("raised")
    if not isinstance(metric, dict):
        return contradiction()
    kind = metric.pop("returned", None)
    if kind is not None:
        return invalid(f"the score of {metric.get('name')} is of type {kind}, not a number")
    value, reason, success = metric.get("score"), metric.get("reason"), metric.get("success")
    number = float(value) if isinstance(value, bool | int | float) else None
    native = ({**metric, "score": number},)
    if isinstance(raised, dict):
        line = raised.get("line")
        message, type_ = str(raised.get("message")), str(raised.get("type"))
        place = line if isinstance(line, int) else None
        problem = EvaluationError(ErrorCode.USER_EXCEPTION, f"{type_}: {message}", type=type_, line=place)
        return Scored(None, None, {}, native=native, error=problem)
    if isinstance(metric.get("error"), str):
        problem = EvaluationError(ErrorCode.USER_EXCEPTION, f"the metric set `self.error`: {metric['error']}")
        kept = ({**metric, "score": None, "reason": None},)
        return Scored(None, None, {}, native=kept, error=problem)
    if found.get("skipped") is True:
        return Scored(None, None, {}, skipped=True, native=native)
    passed = success if isinstance(success, bool) and number is not None else None
    note = Note("no_score", "the metric did not set `self.score`; DeepEval ignores the value that `measure` returns")
    named = NamedScore(str(metric.get("name")), number, reason if isinstance(reason, str) else None, passed)
    read = scored([named], native, notes=(note,) if number is None else ())
    return replace(read, passed=passed) if isinstance(read, Scored) else read


DIALECT: Final = Dialect(
    contract=Contract("deepeval"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    warnings={
        "measure_called": WarningKind(
            "DeepEval calls `a_measure`, which the metric does not have; the host called `measure`",
            remedy="set `async_mode = False` in the metric, so that DeepEval calls `measure` as well",
        )
    },
    native_row={
        "test_case": {"input": "What is the capital of France?", "actual_output": "Paris", "expected_output": "Paris"}
    },
    takes=("correct_answer_key", "config", "messages", "variables"),
    truth=("expected_output",),
    sdk=Sdk(
        module="deepeval",
        stand_in=StandIn("dialects/deepeval/modules", preimport="deepeval.metrics"),
        real=frozenset({"deepeval"}),
    ),
)
