"""Custom metrics of Vertex AI's Gen AI evaluation, and the values that Vertex AI makes from their results.

The expected results follow google-cloud-aiplatform 2.7.0, `agentplatform/_genai/_evals_metric_handlers.py`.
"""

from functools import partial

from evaluator_host.types.evaluator import Contract, Row
from tests.dialects.cases import NativeCase

SERVICE = Row(variables={"prompt": {"text": "2+2?"}, "response": {"text": "4"}, "reference": {"text": "4"}})
SDK = Row(
    variables={
        "prompt": {"parts": [{"text": "2+2?"}]},
        "response": {"parts": [{"text": "4"}]},
        "reference": {"response": {"parts": [{"text": "4"}]}},
    }
)
OURS = Row({"prompt": "2+2?", "level": 1, "correct_answer": "4"}, "4")

case = partial(NativeCase, row=SERVICE, recognised=Contract("vertex"))


def returns(value: str) -> str:
    """Return the code of a metric that returns this expression."""
    return f"def evaluate(instance):\n    return {value}\n"


CASES = [
    case(
        id="texts as the service gives them",
        code=returns("float(instance['response']['text'] == instance['reference']['text'])"),
        native=[{"score": 1.0, "explanation": None}],
        score=1,
        passed=None,
    ),
    *(
        case(
            id=f"parts as in the user's own process, {name}",
            row=row,
            code=returns(
                "1.0 if instance['response']['parts'][0]['text'] == instance['reference']['response']['parts'][0]['text'] else 0"
            ),
            score=1,
        )
        for name, row in (("the service's row", SERVICE), ("the SDK's row", SDK), ("a row in the host's form", OURS))
    ),
    case(
        id="the inputs keep their names",
        row=OURS,
        code=returns("instance['level'] + len(instance['prompt']['text'])"),
        score=5,
    ),
    case(
        id="a score and an explanation",
        code=returns("{'score': 0.5, 'explanation': 'half'}"),
        native=[{"score": 0.5, "explanation": "half"}],
        score=0.5,
        reason="half",
    ),
    case(
        id="the contents of the service",
        code=returns("float(instance['response']['contents']['gemini_contents'][0]['parts'][0]['text'])"),
        score=4,
    ),
    case(
        id="the function of a CustomMetric gets texts",
        row=OURS,
        code="from vertexai.evaluation import CustomMetric\n\ndef word_count(instance: dict) -> dict:\n    return {'word_count': len(instance['response'].split()), 'explanation': instance['prompt']}\n\nmetric = CustomMetric(name='word_count', metric_function=word_count)\n",
        score=1,
        reason="2+2?",
    ),
    case(id="a bool", code=returns("True"), native=[{"score": 1.0, "explanation": None}], score=1, passed=True),
    case(id="text is refused", code=returns("'1'"), status="failed", error="invalid_result", message="number"),
    case(id="code that raises an exception", code=returns("instance['nope']"), status="failed", error="user_exception"),
]
