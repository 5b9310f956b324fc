"""Arguments and results of AgentCore's evaluators (dialect `agentcore`): Lambda handlers that get a session's spans.

Source of the rules: bedrock-agentcore 1.25.0, evaluation/custom_code_based_evaluators.
"""

from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    is_number,
    scored,
    shown,
    text_of,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Returned

_TRACE: Final = "0" * 32


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the event that the handler gets: the row's `variables`, or an event made from the row's other fields."""
    return bind_native(row, settings, _event, needs="evaluationInput")


def _event(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    spans = list((row.trace or {}).get("spans") or [])
    trace_id = str(spans[0].get("trace_id") or _TRACE) if spans and isinstance(spans[0], dict) else _TRACE
    invoked = {
        "traceId": trace_id,
        "spanId": "0" * 16,
        "name": "invoke_agent",
        "attributes": {"gen_ai.input": inputs, "gen_ai.output": row.outputs},
    }
    reference = {"context": {"spanContext": {"traceId": trace_id}}, "expectedResponse": {"text": text_of(truth)}}
    return {
        "schemaVersion": "1.0",
        "evaluationLevel": "TRACE",
        "evaluationInput": {"sessionSpans": [invoked, *spans]},
        "evaluationReferenceInputs": [] if inputs is row.inputs else [reference],
        "evaluationTarget": {"traceIds": [trace_id], "spanIds": []},
    }


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    """Read the value, label and explanation in the response; a response with an error code fails the row."""
    if (error := unreadable(returned)) is not None:
        return error
    value = returned.value
    if not isinstance(value, dict):
        return invalid(
            f"the handler returned {shown(value)}, not an EvaluatorOutput",
            "return an object with value, label and explanation",
        )
    native = (value,)
    if value.get("errorCode"):
        said = f": {value['errorMessage']}" if value.get("errorMessage") else ""
        problem = EvaluationError(ErrorCode.USER_EXCEPTION, f"the evaluator returned {value['errorCode']}{said}")
        return Scored(None, None, {}, native=native, error=problem)
    label, number = value.get("label"), value.get("value")
    if not isinstance(label, str):
        problem = invalid("the response has no label", "set label; only a response with errorCode may lack one")
        return Scored(None, None, {}, native=native, error=problem)
    if number is not None and not is_number(number):
        return Scored(None, None, {}, native=native, error=invalid(f"value is {shown(number)}, not a number"))
    reason = value.get("explanation")
    named = NamedScore("value", number, reason if isinstance(reason, str) else None)
    found = scored([named], native)
    return replace(found, label=label) if isinstance(found, Scored) else found


DIALECT: Final = Dialect(
    contract=Contract("agentcore"),
    bind=bind,
    interpret=interpret,
    languages=PYTHON_ONLY,
    native_row={
        "schemaVersion": "1.0",
        "evaluationLevel": "TRACE",
        "evaluationInput": {
            "sessionSpans": [
                {"traceId": "1", "spanId": "1", "name": "invoke_agent", "attributes": {"gen_ai.output": "Paris"}}
            ]
        },
        "evaluationReferenceInputs": [
            {"context": {"spanContext": {"traceId": "1"}}, "expectedResponse": {"text": "Paris"}}
        ],
        "evaluationTarget": {"traceIds": ["1"]},
    },
    takes=("correct_answer_key", "variables"),
    truth=("expected_response", "expected_response_text", "expectedResponse"),
    sdk=Sdk(
        module="bedrock_agentcore",
        stand_in=StandIn(
            "dialects/agentcore/modules", preimport="bedrock_agentcore.evaluation.custom_code_based_evaluators"
        ),
        real=frozenset({"bedrock-agentcore"}),
    ),
)
