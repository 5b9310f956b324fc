"""Scorers of Inspect AI, and their scores in the package inspect_ai 0.3.285."""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

FOUR = Row(variables={"input": "2+2?", "completion": "4", "target": "4", "metadata": {"k": 1}})
OURS = Row({"question": "2+2?", "correct_answer": "4"}, "4")
HEAD = (
    "from inspect_ai.scorer import CORRECT, Score, Target, accuracy, mean, scorer, stderr\n"
    "from inspect_ai.solver import TaskState\n\n\n"
)

case = partial(NativeCase, row=FOUR, recognised=Contract("inspect"))


def scorer(body: str, decorator: str = "@scorer(metrics=[accuracy(), stderr()])", parameters: str = "") -> str:
    """Return the code of a scorer whose function has this body."""
    return (
        f"{HEAD}{decorator}\ndef mine({parameters}):\n"
        f"    async def score(state: TaskState, target: Target):\n        {body}\n\n    return score\n"
    )


def one(value: Any, **more: Any) -> dict[str, Any]:
    """Return what Inspect logs for a score."""
    return {"name": "mine", "value": value, "answer": None, "explanation": None, "metadata": None, **more}


COMPARED = "return Score(value=CORRECT if state.output.completion == target.text else 'I', explanation='compared')"
CASES = [
    case(
        id="right",
        code=scorer(COMPARED),
        native=[one("C", explanation="compared")],
        score=1.0,
        passed=True,
        label="C",
        reason="compared",
    ),
    case(id="wrong", code=scorer(COMPARED.replace("==", "!=")), score=0.0, passed=False, label="I"),
    case(
        id="a row in the host's form",
        row=OURS,
        code=scorer("return Score(value=state.input_text == '2+2?' and target.text == '4')"),
        score=1.0,
        passed=True,
    ),
    case(
        id="a row with a column called target",
        row=Row({"input": "2+2?", "target": "4"}, "4"),
        code=scorer("return Score(value=target.text == '4')"),
        score=1.0,
    ),
    case(
        id="a grader that asks a model",
        code="from inspect_ai.scorer import model_graded_qa\n\ndef mine():\n    return model_graded_qa(partial_credit=True)\n",
        recognised=None,
        status="failed",
        error="entry_not_found",
        message="model_graded_qa of inspect asks a model, so the host does not call it",
    ),
    case(id="partial", code=scorer("return Score(value='P')"), score=0.5, passed=False),
    case(id="number", code=scorer("return Score(value=0.25)"), native=[one(0.25)], score=0.25, passed=None, label=None),
    case(id="numeric text", code=scorer("return Score(value='0.75')"), score=0.75),
    case(id="yes", code=scorer("return Score(value='Yes')"), score=1.0, passed=True),
    case(
        id="a word",
        code=scorer("return Score(value='green')"),
        score=None,
        label="green",
        warnings=frozenset({"no_score"}),
    ),
    case(
        id="several",
        code=scorer("return Score(value={'a': 1, 'b': 0.5})"),
        native=[one({"a": 1, "b": 0.5})],
        score=None,
        metrics={"a": 1.0, "b": 0.5},
    ),
    case(
        id="several parts, one of which is the score",
        code=scorer("return Score(value={'score': 'P', 'a': 1, 'b': 'green', 'c': None})"),
        score=0.5,
        metrics={"score": 0.5, "a": 1.0},
        warnings=frozenset({"scoring_failed"}),
    ),
    case(id="a number in groups of digits", code=scorer("return Score(value='1_000')"), score=1000.0),
    *(
        case(
            id=f"{value} is not a value",
            code=scorer(f"return Score(value={value})"),
            status="failed",
            error="user_exception",
            message="Score: value is",
        )
        for value in ("None", "{'a': [1]}", "[1, {}]")
    ),
    case(
        id="unscored",
        code=scorer("return Score.unscored(reason='x')"),
        status="skipped",
        native=[one(None)],
        score=None,
    ),
    case(id="none", code=scorer("return None"), status="skipped", native=[], score=None),
    case(id="no score", code=scorer("return 1.0"), status="failed", error="invalid_result", message="takes a Score"),
    case(id="exception", code=scorer("raise ValueError('broken')"), status="failed", error="user_exception", line=8),
    case(
        id="not async",
        code=scorer("return Score(value='C')").replace("async def", "def"),
        recognised=None,
        status="failed",
        error="load_error",
        message="not declared as an async callable",
    ),
    case(
        id="several targets",
        row=Row(variables={"input": "q", "completion": "b", "target": ["a", "b"]}),
        code=scorer("return Score(value=state.output.completion in list(target), answer=str(len(target)))"),
        native=[one(True, answer="2")],
    ),
    case(
        id="options",
        settings=EvaluatorSettings(config={"weight": 0.5}),
        code=scorer("return Score(value=weight)", parameters="weight=1.0"),
        score=0.5,
    ),
    case(
        id="an unused name of the package",
        code="from inspect_ai.scorer import Score, accuracy, match, scorer\n\n@scorer(metrics=[accuracy()])\ndef mine():\n    async def score(state, target):\n        return Score(value='C')\n    return score\n",
        score=1.0,
    ),
    case(
        id="a task beside its scorer",
        code="from inspect_ai import Task, task\nfrom inspect_ai.dataset import Sample\nfrom inspect_ai.model import get_model\nfrom inspect_ai.scorer import Score, accuracy, scorer\nfrom inspect_ai.solver import generate\n\nmodel = get_model()\n\n@scorer(metrics=[accuracy()])\ndef mine():\n    async def score(state, target):\n        return Score(value='I')\n    return score\n\n@task\ndef demo():\n    return Task(dataset=[Sample(input='2+2')], solver=[generate()], scorer=mine())\n",
        score=0.0,
    ),
    case(
        id="a scorer that only the package makes",
        code="from inspect_ai.scorer import accuracy, model_graded_qa, multi_scorer, scorer\n\n@scorer(metrics=[accuracy()])\ndef mine():\n    return multi_scorer(scorers=[model_graded_qa()], reducer='mode')\n",
        status="failed",
        error="user_exception",
        message="`inspect_ai.scorer.multi_scorer()` needs the package inspect_ai",
    ),
]
