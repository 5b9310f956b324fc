"""Scorers of MLflow, and the feedback that MLflow (the package mlflow 3.17.2) stores for them."""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

FOUR = Row(variables={"inputs": {"question": "2+2?"}, "outputs": "4", "expectations": {"expected_response": "4"}})
OURS = Row({"question": "2+2?", "correct_answer": "4"}, "4")
HEAD = "from mlflow.entities import AssessmentSource, Feedback\nfrom mlflow.genai.scorers import Scorer, scorer\n\n"

case = partial(NativeCase, row=FOUR, recognised=Contract("mlflow"))


def scorer(body: str, parameters: str = "outputs", decorator: str = "@scorer") -> str:
    """Return the code of a scorer whose function has this body."""
    return f"{HEAD}{decorator}\ndef mine({parameters}):\n    {body}\n"


def one(value: Any, name: str = "mine", **more: Any) -> dict[str, Any]:
    """Return what MLflow stores for a piece of feedback."""
    return {"name": name, "value": value, "rationale": None, "error": None, "metadata": None, **more}


CASES = [
    case(
        id="bool",
        code=scorer("return outputs == expectations['expected_response']", "outputs, expectations"),
        native=[one(True)],
        score=1.0,
        passed=True,
    ),
    case(
        id="a row in the host's form",
        row=OURS,
        code=scorer(
            "return outputs == expectations['expected_response'] and 'correct_answer' not in inputs",
            "inputs, outputs, expectations",
        ),
        score=1.0,
    ),
    case(id="number", code=scorer("return len(outputs)"), native=[one(1)], score=1, passed=None),
    case(id="yes", code=scorer("return 'yes'"), native=[one("yes")], score=None, passed=True, label="yes"),
    case(
        id="a rating",
        code="from mlflow.genai.judges import CategoricalRating, make_judge\n"
        + scorer("return Feedback(value=CategoricalRating.YES)"),
        native=[one("yes", "mine")],
        score=None,
        passed=True,
        label="yes",
    ),
    case(
        id="a rating itself",
        code="from mlflow.genai.judges import CategoricalRating\n" + scorer("return CategoricalRating.NO"),
        native=[one("no")],
        passed=False,
        label="no",
    ),
    *(
        case(
            id=f"a text of an enumeration: {value}",
            code="import enum\n\nclass Word(str, enum.Enum):\n    GOOD = 'good'\n\n" + scorer(f"return {value}"),
            native=[one("good")],
            label="good",
        )
        for value in ("Word.GOOD", "Feedback(value=Word.GOOD)")
    ),
    case(id="no", code=scorer("return 'no'"), passed=False, label="no"),
    case(id="another word", code=scorer("return 'green'"), passed=None, label="green"),
    case(
        id="feedback",
        code=scorer("return Feedback(value=0.5, rationale='half', metadata={'a': '1'})"),
        native=[one(0.5, rationale="half", metadata={"a": "1"})],
        score=0.5,
        reason="half",
    ),
    case(
        id="several",
        code=scorer("return [Feedback(name='a', value=True), Feedback(name='b', value=0.25)]"),
        native=[one(True, "a"), one(0.25, "b")],
        score=0.625,
        metrics={"score": 0.625, "a": 1.0, "b": 0.25},
        warnings=frozenset({"several_scores"}),
    ),
    case(
        id="several values, none of which counts",
        settings=EvaluatorSettings(score_output="c"),
        code=scorer("return [Feedback(name='a', value=True), Feedback(name='b', value=0.25)]"),
        native=[one(True, "a"), one(0.25, "b")],
        status="failed",
        error="invalid_result",
        message="settings.score_output is 'c'",
    ),
    case(
        id="several verdicts in words",
        code=scorer("return [Feedback(name='a', value='yes'), Feedback(name='b', value='no')]"),
        score=None,
        passed=False,
        label="yes",
    ),
    case(
        id="verdicts in words that all pass",
        code=scorer("return [Feedback(name='a', value='yes'), Feedback(name='b', value='YES')]"),
        passed=True,
    ),
    case(
        id="a verdict in words beside a bool",
        threshold=0.5,
        code=scorer("return [Feedback(name='a', value='no'), Feedback(name='b', value=True)]"),
        score=1.0,
        passed=False,
        label="no",
    ),
    case(
        id="text without a verdict beside a bool",
        threshold=0.5,
        code=scorer("return [Feedback(name='right', value=True), Feedback(name='tone', value='friendly')]"),
        score=1.0,
        passed=True,
        label="friendly",
    ),
    case(
        id="texts without a verdict",
        code=scorer("return [Feedback(name='a', value='green'), Feedback(name='b', value='friendly')]"),
        passed=None,
        label="green",
    ),
    case(
        id="feedback with an error beside a score",
        code=scorer("return [Feedback(name='a', error=ValueError('no model')), Feedback(name='b', value=1.0)]"),
        score=1.0,
        warnings=frozenset({"scoring_failed"}),
    ),
    case(id="none", code=scorer("return None"), status="skipped", native=[], score=None),
    case(
        id="feedback with an error",
        code=scorer("return Feedback(error=ValueError('no model'))"),
        status="failed",
        error="invalid_result",
        message="no model",
    ),
    case(id="a dict", code=scorer("return {'score': 1}"), status="failed", error="invalid_result", message="Got dict"),
    case(id="exception", code=scorer("raise KeyError('nope')"), status="failed", error="user_exception", line=6),
    case(
        id="named",
        code=scorer("return 1", decorator="@scorer(name='other', aggregations=['mean'])"),
        native=[one(1, "other")],
    ),
    case(id="async", code=scorer("return 1").replace("def mine", "async def mine"), native=[one(1)]),
    case(
        id="class with an object",
        code=f"{HEAD}class C(Scorer):\n    name: str = 'c'\n    needle: str = '4'\n\n    def __call__(self, *, outputs):\n        return self.needle in outputs\n\nchecker = C()\n",
        native=[one(True, "c")],
    ),
    case(
        id="class from a config",
        settings=EvaluatorSettings(config={"name": "c", "needle": "5"}),
        code=f"{HEAD}class C(Scorer):\n    needle: str\n\n    def __call__(self, *, outputs):\n        return self.needle in outputs\n",
        native=[one(False, "c")],
        score=0.0,
        passed=False,
    ),
    case(
        id="module names",
        code="import mlflow\n\n@mlflow.genai.scorer\ndef mine(outputs):\n    return mlflow.entities.Feedback(value=1)\n",
        native=[one(1)],
    ),
    case(
        id="an unused name of the package",
        code="from mlflow.genai.scorers import Correctness, scorer\n\n@scorer\ndef mine(outputs):\n    return outputs == '4'\n\ndef judges():\n    return [Correctness(name='c')]\n",
        native=[one(True)],
    ),
    case(
        id="a list of judges that ask a model, beside a scorer",
        code=f"{HEAD}from mlflow.genai.scorers import Correctness, Safety\n\n@scorer\ndef mine(outputs):\n    return outputs == '4'\n\ndef run(data):\n    return mlflow.genai.evaluate(data=data, scorers=[Correctness(), mine, Safety()])\n",
        native=[one(True)],
        warnings=frozenset({"entry_left_out"}),
    ),
    case(
        id="a list of judges that ask a model",
        code="import mlflow\nfrom mlflow.genai.scorers import Correctness, Safety\n\nSCORERS = [Correctness(), Safety()]\n\ndef run(data):\n    return mlflow.genai.evaluate(data=data, scorers=SCORERS)\n",
        recognised=None,
        status="failed",
        error="entry_not_found",
        message="Correctness, Safety of mlflow ask a model",
    ),
    case(
        id="a snippet without imports",
        code="@mlflow.genai.scorer\ndef mine(outputs, expectations) -> bool:\n    return outputs == expectations['expected_response']\n",
        native=[one(True)],
        warnings=frozenset({"prebound"}),
    ),
]
