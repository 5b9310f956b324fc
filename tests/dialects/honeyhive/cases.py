"""Evaluators from HoneyHive's experiments and from its hosted editor, and the values that HoneyHive stores.

The expected results follow honeyhive 1.7.0, experiments/core.py.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

ROW = Row(variables={"inputs": {"q": "2+2"}, "outputs": "4", "ground_truth": {"answer": "4"}})
UNKNOWN = Row(variables={"inputs": {"q": "2+2"}, "outputs": "4", "ground_truth": None})

case = partial(NativeCase, row=ROW, recognised=Contract("honeyhive"))
declared = partial(case, contract=Contract("honeyhive"))


def stored(name: str, score: Any, explanation: str | None = None, **extras: Any) -> list[dict[str, Any]]:
    """Return what HoneyHive stores for a verdict."""
    return [{"eval_name": name, "score": score, "explanation": explanation, "extras": extras}]


def returns(value: str) -> str:
    """Return the code of a function that returns this expression."""
    return f"def f(outputs, inputs, ground_truth=None):\n    return {value}\n"


CASES = [
    case(
        id="by position",
        code="def accuracy(outputs, inputs, ground_truth):\n    return outputs == ground_truth['answer']\n",
        native=stored("accuracy", True),
        score=1,
        passed=True,
    ),
    case(
        id="two arguments with a ground truth",
        code="def length(outputs, inputs):\n    return len(outputs) + len(inputs)\n",
        native=stored("length", 2),
    ),
    case(
        id="two arguments without ground truth",
        row=UNKNOWN,
        code="def length(outputs, inputs):\n    return len(outputs) + len(inputs)\n",
        native=stored("length", 2),
        score=2,
    ),
    case(
        id="decorated and awaited",
        code="from honeyhive import evaluator\n\n@evaluator()\nasync def f(o, i, t=None):\n    return 0.5\n",
        native=stored("f", 0.5),
        score=0.5,
    ),
    case(
        id="the hosted editor's event",
        row=Row({"q": "2+2", "correct_answer": "4"}, "4"),
        code="def judge(event):\n    return event['outputs'] == event['feedback']['ground_truth']\n",
        native=stored("judge", True),
        score=1,
    ),
    case(id="text", code=returns("'good'"), native=stored("f", "good"), score=None, label="good"),
    case(
        id="a dict with score and explanation",
        code=returns("{'score': 0.25, 'explanation': 'so', 'a': 1, 'b': [1]}"),
        native=stored("f", 0.25, "so", a=1),
        score=0.25,
        reason="so",
        metrics={"score": 0.25, "f": 0.25, "a": 1},
        warnings=frozenset({"dropped"}),
    ),
    case(
        id="a dict without score",
        code=returns("{'a': 1, 'b': 0.5}"),
        native=stored("f", None, a=1, b=0.5),
        score=None,
        metrics={"a": 1, "b": 0.5},
        warnings=frozenset({"no_score"}),
    ),
    case(
        id="a text as the score beside a number",
        code=returns("{'score': 'bad', 'confidence': 0.95}"),
        native=stored("f", "bad", confidence=0.95),
        score=None,
        label="bad",
        metrics={"confidence": 0.95},
        warnings=frozenset({"no_score"}),
    ),
    case(id="a list of one", code=returns("[0.75]"), native=stored("f", 0.75), score=0.75),
    case(
        id="a list of two",
        code=returns("[1, 2]"),
        native=stored("f", None),
        score=None,
        warnings=frozenset({"dropped"}),
    ),
    case(id="NaN", code=returns("float('nan')"), status="failed", error="non_finite"),
    case(id="an object", code=returns("{'score': 1, 'at': object()}"), status="failed", error="invalid_result"),
    case(id="None", code=returns("None"), native=stored("f", None), score=None, warnings=frozenset({"no_score"})),
    case(
        id="an exception",
        code="def b(outputs, inputs, ground_truth=None):\n    raise ValueError('x')\n",
        status="failed",
        error="user_exception",
        native=[{"score": None, "explanation": None, "extras": {}}],
        line=2,
    ),
    declared(
        id="several functions",
        code="def a(outputs, inputs):\n    return 1\n\ndef b(outputs, inputs):\n    return 2\n",
        score=1.5,
        metrics={"a": 1, "b": 2},
        warnings=frozenset({"several_entries"}),
    ),
    declared(
        id="one of several",
        row=UNKNOWN,
        code="def a(outputs, inputs):\n    return 1\n\ndef b(outputs, inputs):\n    return 2\n",
        settings=EvaluatorSettings(entry="b"),
        native=stored("b", 2),
    ),
    case(
        id="an unused name of the package",
        code="from honeyhive import HoneyHiveTracer\n" + returns("1"),
    ),
]
