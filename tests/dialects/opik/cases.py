"""Custom metrics of Opik, and the values that Opik stores for their scores.

The expected results follow comet-ml/opik@02b630c0 (opik_backend/process_worker.py) and the package opik 2.2.122.
"""

from functools import partial
from textwrap import indent
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

ABC = Row(variables={"data": {"output": "abc", "reference": "abc"}})
TURNS = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "bye"},
]
OURS = Row({"question": "2+2?", "correct_answer": "4"}, "4")

case = partial(NativeCase, row=ABC, recognised=Contract("opik"))


def metric(
    body: str,
    parameters: str = "output, reference, **ignored",
    name: str = "Mine",
    kind: str = "base_metric.BaseMetric",
) -> str:
    """Return the code of a metric class whose `score` has this body."""
    return (
        "from opik.evaluation.metrics import base_metric, score_result\n"
        "from opik.evaluation.metrics.conversation import conversation_thread_metric, types\n\n"
        f"class {name}({kind}):\n"
        f"    def __init__(self, name: str = 'mine'):\n        super().__init__(name=name, track=False)\n\n"
        f"    def score(self, {parameters}):\n{indent(body, '        ')}\n"
    )


def one(value: Any, name: str = "mine", **more: Any) -> dict[str, Any]:
    """Return what Opik stores for a score."""
    usual = {"reason": None, "category_name": None, "metadata": None, "scoring_failed": False}
    return {"name": name, "value": value, **usual, **more}


CASES = [
    case(
        id="the arguments of score as variables",
        row=Row(variables={"output": "abc", "reference": "abc"}),
        code=metric("return score_result.ScoreResult(value=1.0 if output == reference else 0.0, name=self.name)"),
        score=1.0,
    ),
    case(
        id="documented metric",
        code=metric("return score_result.ScoreResult(value=1.0 if output == reference else 0.0, name=self.name)"),
        native=[one(1.0)], score=1.0, passed=None, metrics={"score": 1.0, "mine": 1.0},
    ),
    case(
        id="names imported from the package itself",
        code="""
            from opik.evaluation.metrics import BaseMetric
            from opik.evaluation.metrics.score_result import ScoreResult as R

            class Short(BaseMetric):
                def score(self, output: str, **kwargs):
                    return R(self.name, len(output) < 9, reason="short", category_name="size", metadata={"n": (1, 2)})
        """,
        native=[one(True, "Short", reason="short", category_name="size", metadata={"n": [1, 2]})],
        score=1.0, passed=True, reason="short",
    ),
    case(
        id="a star import",
        code="""
            from opik.evaluation.metrics import *
            import opik.evaluation.metrics.score_result as sr

            class Star(BaseMetric):
                def score(self, **kwargs):
                    return sr.ScoreResult(name=self.name, value=len(kwargs))
        """,
        native=[one(2, "Star")],
    ),
    case(
        id="several scores; other values are dropped",
        code=metric("return [score_result.ScoreResult('a', 1.0), 'no score', score_result.ScoreResult('b', 0.5)]"),
        native=[one(1.0, "a"), one(0.5, "b")], score=0.75, metrics={"score": 0.75, "a": 1.0, "b": 0.5}, warnings=frozenset({"several_scores"}),
    ),
    case(
        id="only usable scores count",
        code=metric("R = score_result.ScoreResult\nreturn [R('a', None), R('b', 1.0, scoring_failed=True), R('c', 0.5)]"),
        native=[one(None, "a"), one(1.0, "b", scoring_failed=True), one(0.5, "c")],
        score=0.5, warnings=frozenset({"scoring_failed"}),
    ),
    case(
        id="the chosen score is not usable",
        settings=EvaluatorSettings(score_output="b"),
        code=metric("R = score_result.ScoreResult\nreturn [R('a', 1.0), R('b', 1.0, scoring_failed=True)]"),
        score=None, metrics={"a": 1.0}, warnings=frozenset({"scoring_failed"}),
    ),
    case(
        id="no score counts",
        settings=EvaluatorSettings(score_output="c"),
        code=metric("return score_result.ScoreResult('a', 1.0)"),
        native=[one(1.0, "a")], status="failed", error="invalid_result", message="settings.score_output is 'c'",
    ),
    case(
        id="no usable score",
        code=metric("return score_result.ScoreResult(value=None, name=self.name)"),
        status="failed", error="invalid_result", native=[one(None)], message="mine",
    ),
    *[
        case(id=f"returns {value}", code=metric(f"return {value}"), status="failed", error="invalid_result", native=[], message=kind)
        for value, kind in {"1.0": "float", "None": "NoneType", "[]": "list", "{'score': 1}": "dict"}.items()
    ],
    case(
        id="a coroutine is not awaited",
        code=metric("return score_result.ScoreResult('a', 1.0)").replace("def score", "async def score"),
        status="failed", error="invalid_result", message="coroutine",
    ),
    case(
        id="missing parameters are None, keyword-only ones too",
        row=Row(variables={"data": {"output": "abc"}}),
        code=metric("return score_result.ScoreResult(value=1.0, name=self.name, reason=repr((metadata, context, top)))", "output, metadata, top=3, *, context"),
        native=[one(1.0, reason="(None, None, 3)")],
    ),
    case(
        id="spans are not filled",
        code=metric("return score_result.ScoreResult('a', 1.0)", "spans, **ignored"),
        status="failed", error="user_exception", message="spans",
    ),
    case(
        id="an unknown key without **kwargs",
        code=metric("return score_result.ScoreResult('a', 1.0)", "output"),
        status="failed", error="user_exception", message="reference",
    ),
    case(
        id="the first class by name",
        code=metric("return score_result.ScoreResult('z', 0.2)", name="Zeta") + metric("return score_result.ScoreResult('a', 0.9)", name="Alpha"),
        native=[one(0.9, "a")], warnings=frozenset({"several_entries"}),
    ),
    case(
        id="another class by settings.entry, with arguments",
        settings=EvaluatorSettings(entry="Zeta", config={"name": "given"}),
        code=metric("return score_result.ScoreResult(self.name, 0.2)", name="Zeta") + metric("return score_result.ScoreResult('a', 0.9)", name="Alpha"),
        native=[one(0.2, "given")],
    ),
    case(
        id="a conversation",
        row=Row(variables={"type": "trace_thread", "data": TURNS}),
        code=metric(
            "roles = [turn['role'] for turn in conversation]\nreturn score_result.ScoreResult(self.name, float(roles.count('user')), reason=','.join(roles))",
            "conversation: types.Conversation, **ignored", kind="conversation_thread_metric.ConversationThreadMetric",
        ),
        native=[one(2.0, reason="user,assistant,user")], score=2.0, warnings=frozenset({"out_of_range"}),
    ),
    case(
        id="a conversation in a row in the host's form",
        row=Row({"messages": TURNS}),
        code=metric("return score_result.ScoreResult(self.name, len(conversation) / 3)", "conversation", kind="conversation_thread_metric.ConversationThreadMetric"),
        score=1.0,
    ),
    case(
        id="a row in the host's form, without keys that the metric does not take",
        row=OURS,
        code=metric("return score_result.ScoreResult(self.name, output == reference, reason=str(input))", "input, output, reference"),
        score=1.0, passed=True, reason="{'question': '2+2?'}",
    ),
    case(
        id="a row in the host's form, with **kwargs",
        row=OURS,
        code=metric("return score_result.ScoreResult(self.name, 1, reason=','.join(sorted(rest)))", "**rest"),
        reason="output,question,reference",
    ),
    case(id="the constructor raises", code=metric("pass").replace("super()", "raise RuntimeError('no model')\n        super()"), recognised=None, status="failed", error="load_error", message="no model"),
    case(id="no score method", code="from opik.evaluation.metrics import base_metric\n\nclass A(base_metric.BaseMetric):\n    pass\n", recognised=None, status="failed", error="load_error", message="abstract"),
    case(id="no metric class", contract=Contract("opik"), code="def score(output, reference):\n    return 1.0\n", recognised=None, status="failed", error="entry_not_found", message="BaseMetric"),
    case(
        id="an unused name of the package", code="from opik.evaluation.metrics import Equals\n" + metric("return score_result.ScoreResult('mine', 1.0)"),
        score=1.0,
    ),
    case(
        id="an unused module of the package", code="import opik.evaluation.models\n" + metric("return score_result.ScoreResult('mine', 1.0)"),
        score=1.0,
    ),
    case(
        id="the error on an attribute that the light modules lack names the pin", code="import opik\n" + metric("opik.track(1)"),
        status="failed", error="user_exception", message="add opik==2.2.122 to `packages`",
    ),
    case(
        id="a required argument called name gets the class's name",
        code=metric("return score_result.ScoreResult(name=self.name, value=1)").replace("name: str = 'mine'", "name: str"),
        native=[one(1, "Mine")],
    ),
    case(
        id="an object that the code makes",
        code=metric("return score_result.ScoreResult(name=self.name, value=1)").replace("name: str = 'mine'", "name: str")
        + "\nmetric = Mine('made')\n",
        native=[one(1, "made")],
    ),
    case(
        id="missing arguments",
        code=metric("return None").replace("name: str = 'mine'", "name, connection"),
        recognised=None,
        status="failed",
        error="load_error",
        message="an object of Mine cannot be created without name, connection",
    ),
    case(
        id="a metric of threads by its documented import",
        code="from typing import Any\nfrom opik.evaluation.metrics import score_result\nfrom opik.evaluation.metrics.conversation import ConversationThreadMetric, types as conversation_types\n\n"
        "class Turns(ConversationThreadMetric):\n    def __init__(self, name: str = 'turns'):\n        super().__init__(name)\n\n"
        "    def score(self, conversation: conversation_types.Conversation, **kwargs: Any):\n"
        "        count = sum(1 for one in conversation if one['role'] == 'assistant')\n"
        "        return score_result.ScoreResult(name=self.name, value=count)\n",
        row=Row({"messages": TURNS}, None),
        score=1,
    ),
]  # fmt: skip
