"""Python graders of OpenAI, and the rewards that OpenAI makes from their results.

The expected results follow the types in openai 3.54.0 (`graders/python_grader`), and OpenAI's page on Python graders.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

PAIR = Row(variables={"sample": {"output_text": "4", "choices": []}, "item": {"reference": "4"}})
OURS = Row({"question": "2+2?", "correct_answer": "4"}, "4")
FAILED: list[dict[str, Any]] = [{"reward": 0.0, "errors": {"python_grader_runtime_error": True}}]

case = partial(NativeCase, row=PAIR, recognised=Contract("openai-grader"))


def returns(value: str) -> str:
    """Return the code of a grader that returns this expression."""
    return f"def grade(sample, item):\n    return {value}\n"


SAME = returns("1.0 if sample['output_text'] == item['reference'] else 0.0")

CASES = [
    case(id="the output against the reference", code=SAME, native=[{"reward": 1.0}], score=1, passed=None),
    case(id="a row in the host's form", row=OURS, code=SAME, native=[{"reward": 1.0}], score=1),
    case(
        id="the ground truth under another name",
        row=Row({"gold": "4"}, "4"),
        settings=EvaluatorSettings(correct_answer_key="gold"),
        code=returns("float(item['gold'] == item['reference'])"),
        score=1,
    ),
    case(
        id="an output that is an object",
        row=Row({}, {"a": 0.5}),
        code="""
            from typing import Any
            def grade(sample: dict[str, Any], item: dict[str, Any]) -> float:
                return sample["output_json"]["a"]
        """,
        score=0.5,
    ),
    case(id="a text without JSON", row=Row({}, "four"), code=returns("float('output_json' in sample)"), score=0),
    case(
        id="a reward in any range", code=returns("4.5"), native=[{"reward": 4.5}], warnings=frozenset({"out_of_range"})
    ),
    case(id="a bool is a number", code=returns("True"), native=[{"reward": 1.0}], warnings=frozenset({"coerced"})),
    case(id="a threshold", code=returns("0.5"), threshold=0.6, passed=False),
    case(
        id="text is refused",
        code=returns("'1'"),
        status="failed",
        error="invalid_result",
        message="number",
        native=FAILED,
    ),
    case(id="None is refused", code=returns("None"), status="failed", error="invalid_result", native=FAILED),
    case(id="NaN is refused", code=returns("float('nan')"), status="failed", error="non_finite", native=FAILED),
    case(
        id="code that raises an exception has the reward 0",
        code=returns("item['nope']"),
        status="failed",
        error="user_exception",
        native=FAILED,
    ),
    NativeCase(
        id="grade is a helper if the code has evaluate",
        row=OURS,
        code=SAME + "def evaluate(inputs, outputs, trace):\n    return outputs == '4'\n",
        recognised=Contract.EVALUATE,
        score=1,
    ),
]
