"""The decorator that turns a function into a Lambda handler."""

import functools

from bedrock_agentcore.evaluation.custom_code_based_evaluators.models import EvaluatorInput, EvaluatorOutput


def custom_code_based_evaluator():
    """Return a decorator that makes a handler: the handler gets an event and a context, and returns a dict."""

    def decorator(fn):
        @functools.wraps(fn)
        def lambda_handler(event, context=None):
            target = event.get("evaluationTarget") or {}
            given = EvaluatorInput(
                evaluation_level=event["evaluationLevel"],
                session_spans=event["evaluationInput"]["sessionSpans"],
                target_trace_id=next(iter(target.get("traceIds") or ()), None),
                target_span_id=next(iter(target.get("spanIds") or ()), None),
                schema_version=event.get("schemaVersion", "1.0"),
                evaluator_id=event.get("evaluatorId"),
                evaluator_name=event.get("evaluatorName"),
                reference_inputs=event.get("evaluationReferenceInputs") or [],
            )
            result = fn(given, context)
            if not isinstance(result, EvaluatorOutput):
                raise TypeError(f"Evaluator must return an EvaluatorOutput, got {type(result).__name__}")
            return result.model_dump()

        lambda_handler.unwrapped = fn
        return lambda_handler

    return decorator
