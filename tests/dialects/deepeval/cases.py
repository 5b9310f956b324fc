"""Custom metrics of DeepEval, and the values that DeepEval (the package deepeval 4.3.1) stores for them."""

from functools import partial
from textwrap import indent
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

FOUR = Row(variables={"test_case": {"input": "2+2?", "actual_output": "4", "expected_output": "4"}})
OURS = Row({"question": "2+2?", "correct_answer": "4", "retrieval_context": ["four"]}, "4")
TURNS = Row({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}, None)
HEAD = "from deepeval.metrics import BaseConversationalMetric, BaseMetric\nfrom deepeval.test_case import LLMTestCase, ToolCall\n\n"

case = partial(NativeCase, row=FOUR, recognised=Contract("deepeval"))


def metric(body: str, base: str = "BaseMetric", more: str = "") -> str:
    """Return the code of a metric whose `measure` has this body."""
    return (
        f"{HEAD}class Mine({base}):\n    def __init__(self, threshold=0.5):\n        self.threshold = threshold\n\n"
        f"    def measure(self, test_case, *args, **kwargs):\n{indent(body, '        ')}\n\n"
        "    async def a_measure(self, test_case, *args, **kwargs):\n        return self.measure(test_case)\n\n"
        f"    @property\n    def __name__(self):\n        return 'Mine'\n{more}"
    )


def one(score: Any, success: Any, **more: Any) -> dict[str, Any]:
    """Return what DeepEval stores for a metric."""
    return {"name": "Mine", "score": score, "threshold": 0.5, "success": success, "reason": None, "error": None, **more}


EXACT = "self.score = float(test_case.actual_output == test_case.expected_output)\nself.reason = 'compared'"
CASES = [
    case(
        id="the fields of the test case as variables",
        row=Row(variables={"input": "2+2?", "actual_output": "4", "expected_output": "4"}),
        code=metric(EXACT),
        score=1.0,
    ),
    case(
        id="pass",
        code=metric(EXACT),
        native=[one(1.0, True, reason="compared")],
        score=1.0,
        passed=True,
        reason="compared",
    ),
    case(
        id="fail",
        code=metric(EXACT.replace("==", "!=")),
        native=[one(0.0, False, reason="compared")],
        score=0.0,
        passed=False,
    ),
    case(
        id="a row in the host's form",
        row=OURS,
        code=metric("self.score = float(test_case.input == '2+2?' and test_case.retrieval_context == ['four'])"),
        score=1.0,
    ),
    case(
        id="only returned",
        code=metric("return 0.9"),
        native=[one(None, False)],
        score=None,
        passed=None,
        warnings=frozenset({"no_score"}),
    ),
    case(id="over one", code=metric("self.score = 4"), native=[one(4.0, True)], score=4.0),
    case(id="bool", code=metric("self.score = True"), native=[one(1.0, True)], score=1.0),
    case(id="text", code=metric("self.score = 'high'"), status="failed", error="invalid_result", message="type str"),
    case(
        id="exception",
        code=metric("raise ValueError('broken')"),
        status="failed",
        error="user_exception",
        message="ValueError: broken",
        line=9,
        native=[one(None, False, error="broken")],
    ),
    case(
        id="error set",
        code=metric("self.score = 1\nself.error = 'no model'"),
        native=[one(None, False, error="no model")],
        status="failed",
        error="user_exception",
        message="no model",
    ),
    case(id="skipped", code=metric("self.skipped = True"), status="skipped", score=None),
    case(
        id="synchronous",
        code=metric(EXACT)
        .replace("self.threshold = threshold", "self.threshold, self.async_mode = threshold, False")
        .replace("return self.measure(test_case)", "raise OSError"),
        score=1.0,
    ),
    case(
        id="threshold of a config",
        settings=EvaluatorSettings(config={"threshold": 2}),
        code=metric(EXACT),
        passed=False,
    ),
    case(
        id="tool calls",
        row=Row(
            variables={
                "test_case": {
                    "input": "q",
                    "actual_output": "a",
                    "tools_called": [{"name": "search", "input_parameters": {"q": 1}}],
                }
            }
        ),
        code=metric(
            "self.score = float(test_case.tools_called == [ToolCall(name='search', input_parameters={'q': 1})])"
        ),
        score=1.0,
    ),
    case(
        id="conversation",
        row=TURNS,
        code=metric("self.score = float(test_case.turns[-1].content == 'yes')", "BaseConversationalMetric"),
        score=1.0,
    ),
    case(
        id="no a_measure",
        code=f"{HEAD}class Mine(BaseMetric):\n    threshold = 0.5\n\n    def measure(self, test_case):\n        self.score = 1\n",
        score=1.0,
        warnings=frozenset({"measure_called"}),
    ),
    case(
        id="an unused name of the package",
        code="from deepeval.metrics import GEval\n" + metric(EXACT) + "\njudge = GEval(name='judge')\n",
        score=1.0,
    ),
    case(
        id="metadata by its older name",
        row=Row(variables={"test_case": {"input": "q", "actual_output": "a", "metadata": {"slots": ["a"]}}}),
        code=metric("self.score = float(test_case.actual_output in (test_case.additional_metadata or {})['slots'])"),
        score=1.0,
    ),
    case(
        id="a test case made with metadata by its older name",
        code=metric(
            "made = LLMTestCase(input='q', actual_output='a', additional_metadata={'k': 1})\n"
            "self.score = float(made.metadata == {'k': 1} == made.additional_metadata)"
        ),
        score=1.0,
    ),
    case(
        id="arguments that the config gives",
        settings=EvaluatorSettings(config={"threshold": 0.2}),
        code=metric("self.score = self.threshold").replace("threshold=0.5", "threshold"),
        score=0.2,
    ),
    case(
        id="missing arguments",
        code=metric(EXACT).replace("threshold=0.5", "threshold, *, word"),
        recognised=None,
        status="failed",
        error="load_error",
        message="an object of Mine cannot be created without threshold, word",
    ),
]
