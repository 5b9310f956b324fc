"""Evaluators of Patronus, and the results that Patronus makes from the values that they return.

The expected results follow `coerce_eval_output_type` in patronus 0.1.26.
"""

from functools import partial

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

ROW = Row(variables={"row": {"task_input": "2+2", "task_output": "4", "gold_answer": "4"}})
OURS = Row({"question": "2+2", "correct_answer": "4"}, "4")
HEAD = "from patronus import evaluator, EvaluationResult\n\n@evaluator()\n"
NUMBERS = """
from decimal import Decimal
from fractions import Fraction

class Tensor:
    __hash__ = None
    def __init__(self, value):
        self.value = value
    def __gt__(self, other):
        return Tensor(self.value > other)
    def __float__(self):
        return float(self.value)

"""
ENUMS = """
from enum import Enum, IntEnum

class Label(Enum):
    YES = "yes"

class Grade(IntEnum):
    TOP = 5

"""

case = partial(NativeCase, row=ROW, recognised=Contract("patronus"))


def returns(value: str) -> str:
    """Return the code of a function that returns this expression."""
    return f"{HEAD}def f(row, **kwargs):\n    return {value}\n"


CASES = [
    case(
        id="the fields of the row as variables",
        row=Row(variables={"task_input": "2+2", "task_output": "4", "gold_answer": "4"}),
        code=returns("row.task_output == row.gold_answer"),
        score=1.0,
    ),
    case(
        id="bool",
        code=returns("row.task_output == row.gold_answer"),
        native=[{"score": 1.0, "pass_": True}],
        score=1.0,
        passed=True,
    ),
    case(id="number", code=returns("0.5"), native=[{"score": 0.5}], score=0.5, passed=None),
    case(id="text", code=returns("'good'"), native=[{"text_output": "good"}], score=None, label="good"),
    case(
        id="a result",
        code=returns("EvaluationResult(score=0.9, pass_=True, explanation='e', metadata={'a': 1})"),
        native=[{"score": 0.9, "pass_": True, "metadata": {"a": 1}, "explanation": "e"}],
        score=0.9,
        passed=True,
        reason="e",
    ),
    case(
        id="a verdict in words",
        code=returns("EvaluationResult(score=0.2, pass_='no')"),
        native=[{"score": 0.2, "pass_": False}],
        score=0.2,
        passed=False,
    ),
    *(
        case(
            id=f"a verdict given as {given}",
            code=f"{NUMBERS}{returns(f'EvaluationResult(pass_={given})')}",
            passed=passed,
        )
        for given, passed in [
            ("1.0", True),
            ("Fraction(0)", False),
            ("Decimal(1)", True),
            ("b'TRUE'", True),
            ("Tensor(0.9) > 0.8", True),
            ("Tensor(0.7) > 0.8", False),
        ]
    ),
    *(
        case(
            id=f"the text {given}",
            code=f"{ENUMS}{returns(f'EvaluationResult(text_output={given}, explanation={given})')}",
            native=[{"text_output": text, "explanation": text}],
            score=None,
            label=text,
            reason=text,
        )
        for given, text in [("Label.YES", "yes"), ("Grade.TOP", "5")]
    ),
    *(
        case(
            id=f"{name}={value} is not accepted",
            code=returns(f"EvaluationResult(score=0.2, {name}={value})"),
            status="failed",
            error="user_exception",
            message=f"EvaluationResult: {name} is {value}; it must be {kind}",
        )
        for name, value, kind in [
            ("pass_", "0.5", "a bool"),
            ("pass_", "'fail'", "a bool"),
            ("pass_", "[]", "a bool"),
            ("pass_", "b'\\xff'", "a bool"),
            ("explanation", "1", "text"),
            ("text_output", "True", "text"),
        ]
    ),
    case(id="None is not an evaluation", code=returns("None"), status="skipped", native=[]),
    case(
        id="a dict",
        code=returns("{'score': 1}"),
        status="failed",
        error="invalid_result",
        message="returned dict, which Patronus refuses",
    ),
    case(id="an exception", code=returns("1 / 0"), status="failed", error="user_exception", native=[]),
    case(
        id="parameters by name, awaited",
        row=OURS,
        code=f"{HEAD}async def f(actual: str, expected: str):\n    return actual == expected\n",
        score=1.0,
    ),
    case(
        id="the task's result",
        code=f"{HEAD}def f(row, task_result, parent=None):\n    return len(task_result.output) + (parent is None)\n",
        score=2.0,
    ),
    case(
        id="a class",
        row=OURS,
        code="""
            import patronus
            from patronus import StructuredEvaluator

            class Same(StructuredEvaluator):
                def evaluate(self, *, task_output=None, gold_answer=None, **kwargs):
                    return patronus.EvaluationResult(score=float(task_output == gold_answer), pass_=True)
        """,
        native=[{"score": 1.0, "pass_": True}],
    ),
    case(
        id="several",
        code=f"{returns('1')}\n@evaluator\ndef g(row):\n    return 2\n",
        score=1.5,
        warnings=frozenset({"several_entries"}),
    ),
    case(
        id="one of several",
        code=f"{returns('1')}\n@evaluator\ndef g(row):\n    return 2\n",
        settings=EvaluatorSettings(entry="g"),
        score=2.0,
    ),
    case(
        id="an unused name of the package",
        code="from patronus import RemoteEvaluator\n" + returns("1"),
    ),
]
