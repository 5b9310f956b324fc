"""Code evaluators of Coze Loop in Python and JavaScript, and the values that Coze Loop stores for their scores.

The expected results follow coze-dev/coze-loop@4f550f38: its templates for code evaluators, and the code that reads
the answers of these evaluators.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, Language, Row
from tests.dialects.cases import NativeCase


def field(text: str) -> dict[str, str]:
    """Return a text field of a turn in a conversation."""
    return {"content_type": "Text", "text": text}


TURN = Row(
    variables={
        "evaluate_dataset_fields": {"input": field("2+2"), "reference_output": field("4")},
        "evaluate_target_output_fields": {"actual_output": field("4")},
    }
)
OURS = Row({"input": {"a": 1}, "correct_answer": "4"}, "4")
NOTHING: list[dict[str, Any]] = [{"score": None, "reason": None}]

case = partial(NativeCase, row=TURN, recognised=Contract("coze"))
javascript = partial(case, language=Language.JAVASCRIPT)


def returns(value: str) -> str:
    """Return the Python code of an evaluator that returns this expression."""
    return f"def exec_evaluation(turn):\n    return {value}\n"


CASES = [
    *(
        case(
            id=f"the output against the reference, {name}",
            row=row,
            code="""
                def exec_evaluation(turn):
                    actual = turn["evaluate_target_output_fields"]["actual_output"]["text"]
                    wanted = turn["evaluate_dataset_fields"]["reference_output"]["text"]
                    return EvalOutput(score=1.0 if actual == wanted else 0.0, reason=json.dumps(actual))
            """,
            native=[{"score": 1.0, "reason": '"4"'}],
            score=1,
            passed=None,
            reason='"4"',
            warnings=frozenset({"prebound"}),
        )
        for name, row in (("its own row", TURN), ("a row in the host's form", OURS))
    ),
    case(
        id="an input that is not text",
        row=OURS,
        code=returns("EvalOutput(0, turn['evaluate_dataset_fields']['input']['text'])"),
        reason='{"a":1}',
    ),
    case(
        id="a score in a text", code=returns("EvalOutput('0.5', '')"), native=[{"score": 0.5, "reason": ""}], score=0.5
    ),
    case(
        id="a bool is not a score",
        code=returns("EvalOutput(True, 'x')"),
        native=[{"score": None, "reason": "x"}],
        score=None,
    ),
    case(
        id="the user's own class",
        code="""
            @dataclass
            class Mine:
                score: float
                reason: str
            def exec_evaluation(turn):
                return Mine(0.25, "mine")
        """,
        native=[{"score": 0.25, "reason": "mine"}],
    ),
    case(
        id="a dict is refused",
        code=returns("{'score': 1, 'reason': 'x'}"),
        status="failed",
        error="invalid_result",
        message="EvalOutput",
        native=NOTHING,
    ),
    case(
        id="code that raises an exception has no score",
        code=returns("turn['nope']"),
        status="failed",
        error="user_exception",
        native=NOTHING,
    ),
    case(
        id="a row of another platform",
        code=returns("EvalOutput(1, '')"),
        row=Row(variables={"output": "4"}),
        status="failed",
        error="missing_input",
    ),
    javascript(
        id="an object in JavaScript",
        code="function exec_evaluation(turn) {\n  const { text } = turn.evaluate_target_output_fields.actual_output;\n"
        "  return { score: text === '4' ? 1 : 0, reason: 'compared' };\n}\n",
        native=[{"score": 1, "reason": "compared"}],
        score=1,
    ),
    javascript(
        id="EvalOutput in JavaScript",
        code="const exec_evaluation = function (turn) {\n  return new EvalOutput(1, 'fine');\n};\n",
        native=[{"score": 1, "reason": "fine"}],
        score=1,
    ),
    javascript(
        id="a class of that name in JavaScript",
        code="class EvalOutput {\n  constructor(score) { this.score = score; this.reason = 'own'; }\n}\nfunction exec_evaluation(turn) {\n  return new EvalOutput(0.5);\n}\n",
        native=[{"score": 0.5, "reason": "own"}],
        score=0.5,
    ),
    javascript(
        id="JavaScript code that throws",
        code="function exec_evaluation(turn) {\n  throw new Error('bad');\n}\n",
        status="failed",
        error="user_exception",
        native=NOTHING,
    ),
]
