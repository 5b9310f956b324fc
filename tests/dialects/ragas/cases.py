"""Decorated metrics of Ragas, and their results in the package ragas 0.4.3."""

from functools import partial

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

PARIS = Row(variables={"response": "Paris", "reference": "Paris"})
OURS = Row({"question": "capital?", "correct_answer": "Paris"}, "Paris")
HEAD = "from ragas.metrics import discrete_metric, numeric_metric, ranking_metric\nfrom ragas.metrics.result import MetricResult\n\n"

case = partial(NativeCase, row=PARIS, recognised=Contract("ragas"))


def metric(body: str, decorator: str, parameters: str = "response: str, reference: str") -> str:
    """Return the code of a metric whose function has this body."""
    return f"{HEAD}@{decorator}\ndef mine({parameters}):\n    {body}\n"


NUMERIC, WORDS = (
    "numeric_metric(name='n', allowed_values=(0, 3))",
    "discrete_metric(name='n', allowed_values=['good', 'bad'])",
)
CASES = [
    case(
        id="number",
        code=metric("return 2", NUMERIC),
        native=[{"name": "n", "value": 2, "reason": None}],
        score=2,
        label=None,
    ),
    case(
        id="a module of its own",
        code="from ragas.metrics.numeric import numeric_metric\nfrom ragas.metrics.result import MetricResult\n\n@numeric_metric(name='n', allowed_values=(0, 1))\ndef mine(response: str):\n    return MetricResult(value=1, reason='said')\n",
        score=1,
        reason="said",
    ),
    case(id="result", code=metric("return MetricResult(value=0.5, reason='half')", NUMERIC), score=0.5, reason="half"),
    case(
        id="a row in the host's form",
        row=OURS,
        code=metric(
            "return float(response == reference and user_input == 'capital?')",
            NUMERIC,
            "response: str, reference: str, user_input: str",
        ),
        score=1.0,
    ),
    case(
        id="pass",
        code=metric("return 'pass'", "discrete_metric(name='n')"),
        native=[{"name": "n", "value": "pass", "reason": None}],
        score=1.0,
        passed=True,
        label="pass",
    ),
    case(
        id="fail",
        code=metric("return 'fail'", "discrete_metric()"),
        native=[{"name": "mine", "value": "fail", "reason": None}],
        score=0.0,
        passed=False,
        label="fail",
    ),
    case(id="a word", code=metric("return 'good'", WORDS), score=None, passed=None, label="good"),
    case(
        id="another word",
        code=metric("return 'fine'", WORDS),
        status="failed",
        error="invalid_result",
        native=[{"name": "n", "value": None, "reason": "Metric n returned 'fine' but expected one of ['good', 'bad']"}],
    ),
    case(
        id="out of range",
        code=metric("return 5", NUMERIC),
        status="failed",
        error="invalid_result",
        message="expected value in range (0, 3)",
    ),
    case(
        id="exception",
        code=metric("raise ValueError('bad')", NUMERIC),
        status="failed",
        error="invalid_result",
        message="Error executing metric n: bad",
    ),
    case(
        id="ranking",
        code=metric("return [1, 0]", "ranking_metric(name='n', allowed_values=2)"),
        native=[{"name": "n", "value": [1, 0], "reason": None}],
        score=None,
    ),
    case(
        id="ranking of another length",
        code=metric("return [1]", "ranking_metric(allowed_values=2)"),
        status="failed",
        error="invalid_result",
    ),
    case(id="async", code=metric("return 1", NUMERIC).replace("def mine", "async def mine"), score=1),
    case(
        id="missing argument",
        code=metric("return 1", NUMERIC, "context: str"),
        status="failed",
        error="user_exception",
        message="context",
    ),
    case(
        id="optional argument",
        code="from typing import Optional\n"
        + metric("return float(context is None)", NUMERIC, "context: Optional[str]"),
        score=1.0,
    ),
    case(
        id="optional by `| None`",
        row=OURS,
        code=metric("return float(context is None)", NUMERIC, "context: str | None"),
        score=1.0,
    ),
    case(
        id="a snippet without imports",
        row=OURS,
        code="@numeric_metric(name='n', allowed_values=(0.0, 1.0))\ndef mine(response: str, reference: str):\n    return MetricResult(value=float(response == reference), reason='compared')\n",
        score=1.0,
        reason="compared",
        warnings=frozenset({"prebound"}),
    ),
    case(id="a default", code=metric("return limit", NUMERIC, "response: str, limit: int = 2"), score=2),
    case(
        id="text as a number",
        row=Row(variables={"response": "2.5"}),
        code=metric("return response", NUMERIC, "response: float"),
        score=2.5,
    ),
    case(
        id="text that is not a number for a parameter of type float",
        row=Row(variables={"response": "many"}),
        code=metric("return response", NUMERIC, "response: float"),
        status="failed",
        error="user_exception",
    ),
    case(
        id="a range",
        code=metric("return 3", "numeric_metric(name='n', allowed_values=range(1, 4))"),
        score=3,
    ),
    case(
        id="out of a range",
        code=metric("return 4", "numeric_metric(name='n', allowed_values=range(1, 4))"),
        status="failed",
        error="invalid_result",
    ),
    case(
        id="text for a numeric metric",
        code=metric("return 'much'", NUMERIC),
        status="failed",
        error="invalid_result",
    ),
    case(
        id="a list argument",
        row=Row(variables={"response": "Paris", "retrieved_contexts": ["a", "b"]}),
        code=metric("return len(retrieved_contexts)", NUMERIC, "response: str, retrieved_contexts: list"),
        score=2,
    ),
    case(id="a bool", code=metric("return response == reference", NUMERIC), score=1.0),
    case(
        id="None",
        code=metric("return None", NUMERIC),
        status="failed",
        error="invalid_result",
    ),
    case(
        id="wrong type",
        row=Row(variables={"response": 4}),
        code=metric("return 1", NUMERIC, "response: str"),
        status="failed",
        error="user_exception",
        message="valid str",
    ),
    case(
        id="named entry",
        settings=EvaluatorSettings(entry="other"),
        code=metric("return 1", NUMERIC) + "\n@numeric_metric()\ndef other(response):\n    return 0.25\n",
        score=0.25,
    ),
    case(
        id="an unused name of the package",
        code="from ragas.metrics import DiscreteMetric, Faithfulness, numeric_metric\n\njudge = DiscreteMetric(name='judge', prompt='Is {response} right?')\n\n@numeric_metric()\ndef mine(response):\n    return 0.5\n",
        score=0.5,
    ),
]
