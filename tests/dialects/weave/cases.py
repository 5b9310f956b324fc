"""Scorers of Weave, their results, and Weave's summary of a single result.

The expected results follow `apply_scorer_async` and `auto_summarize` in weave 0.54.0.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

ROW = Row(variables={"example": {"question": "2+2?", "expected": "4"}, "output": "4"})
OURS = Row({"question": "2+2?", "correct_answer": "4"}, "4")
TRUE = {"true_count": 1, "true_fraction": 1.0}

case = partial(NativeCase, row=ROW, recognised=Contract("weave"))


def op(value: str, head: str = "output") -> str:
    """Return the code of a function that returns this expression."""
    return f"import weave\n\n@weave.op\ndef m({head}):\n    return {value}\n"


def native(result: Any, summary: Any) -> list[dict[str, Any]]:
    """Return what Weave stores for a result."""
    return [{"result": result, "summary": summary}]


CASES = [
    *(
        case(
            id=f"a verdict given as {given}",
            code=f"from weave.flow.scorer import WeaveScorerResult\n{op(f'WeaveScorerResult(passed={given}, metadata={{}})')}",
            native=native(
                {"passed": passed, "metadata": {}},
                {"passed": {"true_count": int(passed), "true_fraction": float(passed)}},
            ),
            score=float(passed),
            passed=passed,
        )
        for given, passed in [
            ("'no'", False),
            ("1", True),
            ("output == '5'", False),
            ("__import__('fractions').Fraction(1)", True),
            ("__import__('decimal').Decimal(0)", False),
            ("b'true'", True),
        ]
    ),
    case(
        id="a verdict given as a tensor",
        code="""
        from weave.flow.scorer import WeaveScorerResult
        import weave

        class Tensor:
            __hash__ = None
            def __init__(self, value):
                self.value = value
            def __float__(self):
                return float(self.value)

        @weave.op
        def m(output):
            return WeaveScorerResult(passed=Tensor(output == '4'), metadata={})
        """,
        score=1.0,
        passed=True,
    ),
    case(
        id="a verdict that may be None",
        code="""
        from weave.flow.scorer import WeaveScorerResult
        import weave

        class Result(WeaveScorerResult):
            passed: bool | None = None

        @weave.op
        def m(output):
            return Result(metadata={"words": 1})
        """,
        native=native({"passed": None, "metadata": {"words": 1}}, {"metadata": {"words": {"mean": 1.0}}}),
    ),
    case(
        id="a subclass declares the field `passed` again, with a value that is not a verdict",
        code="""
        from weave.flow.scorer import WeaveScorerResult
        import weave

        class Result(WeaveScorerResult):
            passed: bool = True

        @weave.op
        def m(output):
            return Result(passed=0.5)
        """,
        status="failed",
        error="user_exception",
        message="passed is 0.5; it must be a bool",
    ),
    case(
        id="a number between 0 and 1 is not accepted as a verdict",
        code=f"from weave.flow.scorer import WeaveScorerResult\n{op('WeaveScorerResult(passed=0.5, metadata={})')}",
        status="failed",
        error="user_exception",
        message="passed is 0.5; it must be a bool",
    ),
    case(
        id="output and columns as variables",
        row=Row(variables={"output": "4", "expected": "4"}),
        code="import weave\n\n@weave.op\ndef same(output, expected):\n    return {'same': output == expected}\n",
        score=1.0,
    ),
    case(
        id="output and a column",
        code=op("{'match': expected == output}", "expected: str, output: str"),
        native=native({"match": True}, {"match": TRUE}),
        score=1.0,
        passed=True,
        metrics={"score": 1.0, "match": 1.0},
    ),
    case(
        id="a row in the host's form",
        row=OURS,
        code=op("expected == output and question == '2+2?'", "output, expected, question"),
        native=native(True, TRUE),
        score=1.0,
    ),
    case(
        id="the older name of the output",
        code=op("{'ok': expected == model_output, 'length': len(model_output)}", "expected, model_output"),
        native=native({"ok": True, "length": 1}, {"ok": TRUE, "length": {"mean": 1.0}}),
        score=None,
        metrics={"ok": 1.0, "length": 1.0},
        warnings=frozenset({"no_score"}),
    ),
    case(
        id="a text as the score beside a number",
        code=op("{'score': 'bad', 'confidence': 0.95}"),
        score=None,
        label="bad",
        metrics={"confidence": 0.95},
        warnings=frozenset({"no_score"}),
    ),
    case(
        id="a row with the older name of the output",
        row=Row(variables={"expected": "4", "model_output": "4"}),
        code=op("{'ok': expected == model_output}", "expected, model_output"),
        native=native({"ok": True}, {"ok": TRUE}),
        score=1.0,
        passed=True,
    ),
    case(
        id="a class with a field",
        code="""
            import weave
            from weave import Scorer

            class Close(Scorer):
                threshold: float = 0.5

                @weave.op
                def score(self, output: str, expected: str) -> dict:
                    distance = abs(float(output) - float(expected))
                    return {'passed': distance <= self.threshold, 'distance': distance}
        """,
        settings=EvaluatorSettings(config={"threshold": 0.25}),
        native=native({"passed": True, "distance": 0.0}, {"passed": TRUE, "distance": {"mean": 0.0}}),
        score=1.0,
        passed=True,
    ),
    case(
        id="columns under other names",
        code="""
            import weave

            class Same(weave.Scorer):
                @weave.op
                def score(self, output, wanted):
                    return output == wanted
        """,
        settings=EvaluatorSettings(config={"column_map": {"wanted": "expected"}}),
        score=1.0,
    ),
    case(
        id="both names of the output",
        code="import weave\n\nclass M(weave.Scorer):\n    @weave.op\n    def score(self, output, model_output):\n        return 1\n",
        recognised=None,
        status="failed",
        error="load_error",
        message="both `output` and `model_output`",
    ),
    case(
        id="no output",
        code=op("1", "expected"),
        status="failed",
        error="user_exception",
        message="must have an `output` or `model_output` argument",
    ),
    case(
        id="a column that the row lacks",
        code=op("1", "output, context"),
        status="failed",
        error="user_exception",
        message="needs context",
    ),
    case(
        id="ops beside a class that takes an argument",
        row=Row(variables={"output": "4", "expected": "4", "question": "2+2?"}),
        code="""
            import weave

            @weave.op
            def predict(question):
                return "4"

            @weave.op
            def same(output, expected):
                return {"same": output == expected}

            class Judge(weave.Scorer):
                model: str

                @weave.op
                def score(self, output):
                    return {"same": False}

            def scorers():
                return [same, Judge(model="m")]
        """,
        score=1.0,
        metrics={"same": 1.0},
        warnings=frozenset({"several_entries", "not_an_entry"}),
    ),
    case(id="all columns", code=op("len(columns) + len(columns['inputs'])", "output, **columns"), score=5.0),
    case(id="awaited", code=op("{'score': 0.5}").replace("def m", "async def m"), score=0.5),
    case(
        id="nested",
        code=op("{'a': {'b': True, 'c': 0.5}, 'text': 'x'}"),
        native=native({"a": {"b": True, "c": 0.5}, "text": "x"}, {"a": {"b": TRUE, "c": {"mean": 0.5}}}),
        metrics={"a.b": 1.0, "a.c": 0.5},
    ),
    case(id="a bool", code=op("output == expected", "output, expected"), score=1.0, passed=True),
    case(id="no", code=op("output != expected", "output, expected"), score=0.0, passed=False),
    case(id="a number", code=op("0.25"), native=native(0.25, {"mean": 0.25}), score=0.25),
    case(id="zero", code=op("0"), score=0.0),
    case(id="a text", code=op("'good'"), score=None, warnings=frozenset({"no_score"})),
    case(id="a number and a text", code=op("{'score': 0.5, 'why': output}"), score=0.5),
    case(id="a list of numbers", code=op("{'score': 1, 'all': [1, 2]}"), score=1.0),
    case(id="a value that is null", code=op("{'score': 1.0, 'rest': None}"), score=1.0),
    case(id="a default", code=op("len(output) + more", "output, more=2"), score=3.0),
    case(id="a column by keyword", code=op("{'match': question == '2+2?'}", "*, output, question"), score=1.0),
    case(
        id="a class without fields",
        code="""
            import weave

            class Same(weave.Scorer):
                @weave.op()
                def score(self, *, output, expected):
                    return {'correct': output == expected}
        """,
        score=1.0,
    ),
    case(
        id="an awaited class",
        code="""
            from weave import Scorer, op

            class Same(Scorer):
                @op
                async def score(self, output, expected):
                    return {'correct': output == expected, 'chars': len(output)}
        """,
        metrics={"correct": 1.0, "chars": 1.0},
    ),
    case(id="an exception", code=op("1 / 0"), status="failed", error="user_exception", line=5),
    case(id="nothing", code=op("None"), status="skipped", native=native(None, None)),
    case(
        id="several",
        code=op("1") + "\n@weave.op()\ndef other(output):\n    return 2\n",
        score=1.5,
        warnings=frozenset({"several_entries"}),
    ),
    case(
        id="one of several",
        code=op("1") + "\n@weave.op()\ndef other(output):\n    return 2\n",
        settings=EvaluatorSettings(entry="other"),
        score=2.0,
    ),
    case(
        id="an unused name of the package",
        code="from weave.scorers import ValidJSONScorer\n" + op("1"),
    ),
    case(
        id="a snippet without imports",
        code="@weave.op\ndef m(output: str, expected: str) -> dict:\n    return {'match': output == expected}\n",
        score=1.0,
        warnings=frozenset({"prebound"}),
    ),
    case(
        id="a scorer that the code makes",
        code="import weave\n\nclass Limit(weave.Scorer):\n    most: int\n\n    @weave.op\n    def score(self, output):\n        return len(output) <= self.most\n\nlimit = Limit(most=0)\n",
        score=0.0,
    ),
]
