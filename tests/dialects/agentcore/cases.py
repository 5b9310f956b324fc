"""Code-based evaluators of Amazon Bedrock AgentCore, and the results that AgentCore gets from them.

The expected results follow bedrock-agentcore 1.25.0, evaluation/custom_code_based_evaluators.
"""

import json
from functools import partial

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

SPANS = [
    {"traceId": "t1", "spanId": "s1", "name": "invoke", "attributes": {"gen_ai.output": "Paris"}},
    {"traceId": "t2", "spanId": "s2", "name": "other", "attributes": {}},
]
EVENT = Row(
    variables={
        "schemaVersion": "1.0",
        "evaluatorName": "mine",
        "evaluationLevel": "TRACE",
        "evaluationInput": {"sessionSpans": SPANS},
        "evaluationReferenceInputs": [{"context": {}, "expectedResponse": {"text": "Paris"}, "more": 1}],
        "evaluationTarget": {"traceIds": ["t1"], "spanIds": []},
    }
)
HEAD = (
    "from bedrock_agentcore.evaluation.custom_code_based_evaluators import (\n"
    "    EvaluatorInput, EvaluatorOutput, custom_code_based_evaluator)\n\n"
)
NONE = {"value": None, "label": None, "explanation": None, "errorCode": None, "errorMessage": None}

case = partial(NativeCase, row=EVENT, recognised=Contract("agentcore"))


def returns(value: str) -> str:
    """Return the code of a handler that returns this expression."""
    return f"{HEAD}@custom_code_based_evaluator()\ndef handler(input: EvaluatorInput, context):\n    return {value}\n"


CASES = [
    case(
        id="a decorated handler",
        code=returns("EvaluatorOutput(value=1, label='Pass', explanation=input.target_trace_id)"),
        native=[{**NONE, "value": 1.0, "label": "Pass", "explanation": "t1"}],
        score=1.0,
        label="Pass",
        reason="t1",
    ),
    case(
        id="spans and references",
        code=returns(
            "EvaluatorOutput(value=input.session_spans[0]['attributes']['gen_ai.output'] =="
            " input.reference_inputs[0].expected_response_text and input.reference_inputs[0].more, label='x')"
        ),
        native=[{**NONE, "value": 1.0, "label": "x"}],
        score=1.0,
    ),
    case(
        id="a row in the host's form",
        row=Row({"q": "capital?", "correct_answer": "Paris"}, "Paris"),
        code=returns(
            "EvaluatorOutput(value=float(input.session_spans[0]['attributes']['gen_ai.output'] =="
            " input.reference_inputs[0].expected_response_text), label='x')"
        ),
        score=1.0,
    ),
    case(
        id="a long expected answer that is not text",
        row=Row({"correct_answer": {"words": ["w"] * 100}}, ""),
        code=returns("EvaluatorOutput(value=len(input.reference_inputs[0].expected_response_text), label='x')"),
        score=float(len(json.dumps({"words": ["w"] * 100}))),
    ),
    case(
        id="an error code",
        code=returns("EvaluatorOutput(errorCode='VALIDATION_FAILED', errorMessage='no spans')"),
        native=[{**NONE, "errorCode": "VALIDATION_FAILED", "errorMessage": "no spans"}],
        status="failed",
        error="user_exception",
        message="VALIDATION_FAILED: no spans",
    ),
    case(
        id="a label is required",
        code=returns("EvaluatorOutput(value=1.0)"),
        status="failed",
        error="user_exception",
        message="label is required",
        native=[],
    ),
    case(
        id="a value that is not a number",
        code=returns("EvaluatorOutput(value='high', label='x')"),
        status="failed",
        error="user_exception",
        message="value is not a number",
    ),
    case(
        id="another type",
        code=returns("{'value': 1.0, 'label': 'x'}"),
        status="failed",
        error="user_exception",
        message="must return an EvaluatorOutput, got dict",
    ),
    case(id="a label alone", code=returns("EvaluatorOutput(label='Poor')"), score=None, label="Poor"),
    case(
        id="a plain Lambda",
        code="""
            def lambda_handler(event, context):
                spans = event['evaluationInput']['sessionSpans']
                return {'value': len(spans) / 2, 'label': 'Pass' if context.get_remaining_time_in_millis() else ''}
        """,
        native=[{"value": 1.0, "label": "Pass"}],
        score=1.0,
    ),
    case(
        id="a plain Lambda without a label",
        code="def handler(event, context):\n    return {'value': 1.0}\n",
        status="failed",
        error="invalid_result",
        message="has no label",
        native=[{"value": 1.0}],
    ),
    case(
        id="a name that is not the default",
        code="def other(event, context):\n    return {'value': 0.5, 'label': 'x'}\n",
        contract=Contract("agentcore"),
        settings=EvaluatorSettings(entry="other"),
        score=0.5,
    ),
    case(
        id="an unused name of the package",
        code="from bedrock_agentcore.runtime import BedrockAgentCoreApp\n"
        + returns("EvaluatorOutput(value=1.0, label='good')"),
    ),
]
