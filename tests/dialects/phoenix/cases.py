"""Code evaluators of Phoenix's server and of phoenix.evals, and the annotations that Phoenix stores.

The expected results follow `coerce_output` in Arize-ai/phoenix@9478f954, and the package arize-phoenix-evals 3.9.4.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from tests.dialects.cases import NativeCase

ROW = Row(variables={"output": "Paris", "reference": "Paris", "input": {"q": "capital?"}, "metadata": {"k": 1}})
FIELDS = Row(variables={"output": "Paris", "expected": "Paris", "input": "capital?"})
OURS = Row({"q": "capital?", "correct_answer": "Paris"}, "Paris")
LABELS = {"type": "categorical", "values": {"good": 1.0, "bad": 0.0, "unknown": None}}
RANGE = {"type": "continuous", "lower_bound": 0.0, "upper_bound": 1.0}

case = partial(NativeCase, row=ROW, recognised=Contract("phoenix"))
refused = partial(case, status="failed", error="invalid_result")
package = partial(case, row=FIELDS)


def config(given: Any) -> EvaluatorSettings:
    """Return settings with an output configuration."""
    return EvaluatorSettings(config={"output_config": given})


def returns(value: str) -> str:
    """Return code for Phoenix's server: a function that returns this expression."""
    return f"def evaluate(output, reference=None, input=None, metadata=None):\n    return {value}\n"


def made(value: str, head: str = "output", decorator: str = "name='x'") -> str:
    """Return code for the package phoenix.evals: an evaluator that returns this expression."""
    return f"from phoenix.evals import create_evaluator\n\n@create_evaluator({decorator})\ndef f({head}):\n    return {value}\n"


def kept(label: Any = None, score: Any = None, explanation: Any = None) -> list[dict[str, Any]]:
    """Return what the server stores for an annotation."""
    return [{"label": label, "score": score, "explanation": explanation}]


def score(**fields: Any) -> list[dict[str, Any]]:
    """Return the score that the package returns."""
    return [{"name": "x", **fields, "kind": "code", "direction": "maximize"}]


CASES = [
    package(
        id="other columns as variables",
        row=Row(variables={"summary": "short text"}),
        code="from phoenix.evals import create_evaluator\n\n@create_evaluator(name='brevity')\ndef brevity(summary: str):\n    return 1.0 if len(summary) < 20 else 0.0\n",
        score=1.0,
    ),
    case(id="number", code=returns("1 if output == reference else 0"), native=kept(score=1.0), score=1.0),
    case(id="number within bounds", code=returns("0.5"), settings=config("continuous 0..1"), native=kept(score=0.5)),
    case(
        id="a row in the host's form",
        row=OURS,
        code="def evaluate(output, reference, input):\n    return float(output == reference and input == {'q': 'capital?'})\n",
        score=1.0,
    ),
    case(
        id="dict",
        code=returns("{'label': 'good', 'score': 0.5, 'explanation': 'half'}"),
        native=kept("good", 0.5, "half"),
        score=0.5,
        label="good",
        reason="half",
    ),
    refused(
        id="unknown key", code=returns("{'score': 0.5, 'reason': 'x'}"), message="only label, score and explanation"
    ),
    case(id="bool is a label", code=returns("True"), native=kept("True"), score=None, label="True", passed=True),
    case(id="text is a label", code=returns("'fine'"), native=kept("fine"), score=None, label="fine"),
    case(id="None", code=returns("None"), native=kept(), score=None),
    refused(id="a list", code=returns("[1]"), message="a number, a bool, a string or a dict"),
    refused(id="a tuple", code=returns("(1, 'x')"), error="user_exception"),
    refused(id="bool for a number", code=returns("True"), settings=config(RANGE), message="needs a number"),
    refused(id="text for a number", code=returns("'0.5'"), settings=config("continuous"), message="needs a number"),
    refused(id="None for a number", code=returns("None"), settings=config("continuous"), message="needs a number"),
    refused(id="above the bound", code=returns("1.5"), settings=config(RANGE), message="above the upper bound 1.0"),
    refused(id="below the bound", code=returns("-1"), settings=config(RANGE), message="below the lower bound 0.0"),
    case(
        id="a label has its configured score",
        code=returns("'good'"),
        settings=config(LABELS),
        native=kept("good", 1.0),
        score=1.0,
    ),
    case(
        id="a label without score",
        code=returns("'unknown'"),
        settings=config(LABELS),
        native=kept("unknown"),
        score=None,
    ),
    refused(id="an unknown label", code=returns("'great'"), settings=config(LABELS), message="good, bad, unknown"),
    refused(id="a number for a label", code=returns("1"), settings=config(LABELS), message="one of its labels"),
    refused(id="bool for a label", code=returns("True"), settings=config(LABELS), message="one of its labels"),
    case(
        id="a dict with the label's score",
        code=returns("{'label': 'bad', 'score': 0, 'explanation': 'e'}"),
        settings=config(LABELS),
        native=kept("bad", 0.0, "e"),
    ),
    refused(
        id="a dict with another score",
        code=returns("{'label': 'bad', 'score': 1}"),
        settings=config(LABELS),
        message="is configured with",
    ),
    case(
        id="several outputs",
        code=returns("{'a': 0.5, 'b': 'good', 'explanation': 'both'}"),
        settings=EvaluatorSettings(config={"output_configs": {"a": "continuous", "b": LABELS}}),
        native=[{"name": "a", **kept(None, 0.5, "both")[0]}, {"name": "b", **kept("good", 1.0, "both")[0]}],
        score=0.75,
    ),
    case(
        id="several outputs, none of which counts",
        code=returns("{'a': 0.5, 'b': 'good'}"),
        settings=EvaluatorSettings(score_output="c", config={"output_configs": {"a": "continuous", "b": LABELS}}),
        status="failed",
        error="invalid_result",
        message="name one of its scores: 'a', 'b'",
    ),
    case(
        id="several outputs, of which a label without score counts",
        code=returns("{'a': 0.5, 'b': 'unknown'}"),
        settings=EvaluatorSettings(score_output="b", config={"output_configs": {"a": "continuous", "b": LABELS}}),
        score=None,
        label="unknown",
        metrics={"a": 0.5},
        warnings=frozenset({"no_score"}),
    ),
    case(
        id="a parameter of another name",
        code="def evaluate(output, expected):\n    return 1\n",
        contract=Contract("phoenix"),
        recognised=None,
        status="failed",
        error="binding_error",
        message="has the parameters expected",
    ),
    case(id="an exception", code=returns("1 / 0"), status="failed", error="user_exception", line=2),
    case(
        id="TypeScript",
        language=Language.TYPESCRIPT,
        code="function evaluate({ output, reference }: any) { return output === reference ? 1 : 0 }",
        native=kept(score=1.0),
    ),
    case(
        id="TypeScript: a property of another name is an input",
        language=Language.TYPESCRIPT,
        code="function evaluate({ output, q, none }: EvaluatorParams) { return q === 'capital?' && none === undefined ? 1 : 0 }",
        native=kept(score=1.0),
        row=Row({"q": "capital?"}, "Paris"),
    ),
    case(
        id="an async arrow, which Phoenix itself refuses",
        language=Language.TYPESCRIPT,
        code="const evaluate = async ({ output }: { output: string }) => ({ score: output.length, explanation: 'length' });",
        native=kept(None, 5.0, "length"),
    ),
    package(
        id="a score that is a list",
        code=made("{'score': [1]}"),
        status="failed",
        error="invalid_result",
        message="the score 'x' is [1], not a number",
    ),
    package(id="a number", code=made("0.5"), native=score(score=0.5), score=0.5),
    package(id="an integer", code=made("len(output)"), native=score(score=5), score=5),
    package(
        id="a bool gives score and label",
        code=made("output == expected", "output: str, expected: str"),
        native=score(score=1.0, label="True"),
        score=1.0,
        passed=True,
        label="True",
    ),
    package(
        id="a short text",
        code=made("'very good indeed'"),
        native=score(label="very good indeed"),
        label="very good indeed",
    ),
    package(
        id="a long text",
        code=made("'it is a very good answer'"),
        native=score(explanation="it is a very good answer"),
        score=None,
    ),
    package(
        id="a dict, other keys dropped",
        code=made("{'score': 0.5, 'label': 'half', 'explanation': 'why', 'extra': 1}"),
        native=score(score=0.5, label="half", explanation="why"),
        reason="why",
    ),
    package(id="a tuple is merged", code=made("(0.5, 'half')"), native=score(score=0.5, label="half")),
    package(
        id="a Score is renamed",
        code="from phoenix.evals import Score\n"
        + made("Score(name='other', score=0.25)", decorator="name='x', direction='maximize'"),
        native=score(score=0.25),
    ),
    package(
        id="nothing",
        code=made("None"),
        status="failed",
        error="user_exception",
        message="Unsupported return type 'NoneType'",
    ),
    package(
        id="a missing field",
        code=made("1", "output, context"),
        status="failed",
        error="user_exception",
        message="context",
    ),
    package(id="awaited", code=made("0.5").replace("def f", "async def f"), score=0.5),
    package(
        id="an unused name of the package",
        code="from phoenix.evals import llm_classify\n" + made("1"),
    ),
    *(
        package(
            id=f"an evaluator of experiments: {head}",
            code=f"from phoenix.client.experiments import create_evaluator\n\n@create_evaluator(kind='CODE', name='x')\n{head}\n    return {value}\n",
            native=score(**native),
            score=1.0,
        )
        for head, value, native in (
            ("def f(output, expected):", "output == expected", {"score": 1.0, "label": "True"}),
            ("def f(said):", "float(said == 'Paris')", {"score": 1.0}),
            (
                "def f(input, reference, metadata):",
                "float(input == 'capital?' and reference is metadata is None)",
                {"score": 1.0},
            ),
            (
                "async def f(*, output, example=None):",
                "(1.0, 'right', 'it is the capital')",
                {"score": 1.0, "label": "right", "explanation": "it is the capital"},
            ),
        )
    ),
    *(
        package(
            id=f"another distribution of the name, unused: {line}",
            code=f"{line}\n" + made("1"),
        )
        for line in (
            "from phoenix.client import Client",
            "from phoenix import client",
            "from phoenix.client import experiments",
            "from phoenix.otel import register",
            "import phoenix as px; session = px.launch_app()",
        )
    ),
]
