"""Code metrics of Galileo, and the values that Galileo stores.

The expected results follow galileo 2.7.0 (utils/metrics.py) and, for older scorers, Galileo's page on registered
metrics.
"""

from functools import partial

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Row
from tests.dialects.cases import NativeCase

LLM = {
    "type": "llm",
    "input": [{"role": "user", "content": "2+2"}],
    "output": {
        "role": "assistant",
        "content": "4",
        "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": "{}"}}],
    },
}
ROW = Row(variables={"step_object": {"type": "trace", "input": "2+2", "output": "4", "spans": [LLM]}})
OURS = Row({"question": "2+2", "correct_answer": "4"}, "4")

case = partial(NativeCase, row=ROW, recognised=Contract("galileo"))


def returns(value: str) -> str:
    """Return the code of a scorer that returns this expression."""
    return f"def scorer_fn(step_object):\n    return {value}\n"


CASES = [
    case(id="number", code=returns("len(step_object.output)"), native=[{"score": 1}], score=1),
    case(id="out of 0..1", code=returns("50"), native=[{"score": 50}], score=50),
    case(id="bool", code=returns("step_object.output == '4'"), native=[{"score": True}], score=1.0, passed=True),
    case(id="text", code=returns("'polite'"), native=[{"score": "polite"}], score=None, label="polite"),
    case(
        id="with metadata",
        code=returns("(0.5, {'why': 'half'})"),
        native=[{"score": 0.5, "metadata": {"why": "half"}}],
        score=0.5,
    ),
    case(id="None does not apply", code=returns("None"), status="skipped", native=[{"score": None}]),
    case(
        id="a list",
        code=returns("[0.1, 0.2]"),
        native=[{"score": [0.1, 0.2]}],
        score=None,
        warnings=frozenset({"no_score"}),
    ),
    case(id="a pair of numbers is a list", code=returns("(0.1, 0.2)"), native=[{"score": [0.1, 0.2]}], score=None),
    case(id="an exception", code=returns("1 / 0"), status="failed", error="user_exception", line=2, native=[]),
    case(id="a set", code=returns("object()"), status="failed", error="invalid_result"),
    case(id="NaN", code=returns("float('nan')"), status="failed", error="non_finite"),
    case(
        id="keyword only, classes, child spans",
        code="""
            from typing import Any
            from galileo import Trace, LlmSpan

            def scorer_fn(*, step_object: Trace, **kwargs: Any) -> bool:
                assert isinstance(step_object, Trace) and step_object.type == "trace"
                span = step_object.spans[0]
                assert isinstance(span, LlmSpan) and span.output.tool_calls[0].function.name == "add"
                return span.input[-1].content == "2+2" and span.output.content == "4"

            def aggregator_fn(*, scores: list) -> dict:
                return {"Mean": sum(scores) / len(scores)}
        """,
        score=1.0,
    ),
    case(
        id="a span of a row in the host's form, the core package",
        row=OURS,
        code="""
            from galileo_core.schemas.logging.span import LlmSpan
            from galileo_core.schemas.logging.step import StepType

            def scorer_fn(step_object: LlmSpan) -> float:
                assert isinstance(step_object, LlmSpan) and step_object.type == StepType.llm
                return float(step_object.output.content == step_object.dataset_output)
        """,
        score=1.0,
    ),
    case(
        id="no import, a row in the host's form",
        row=OURS,
        code=returns("step_object.input == '2+2' and step_object.spans[0].output.content"),
        label="4",
    ),
    case(
        id="the older signature",
        row=OURS,
        code="""
            def scorer_fn(*, index, node_input, node_output, dataset_variables, **kwargs):
                return abs(len(node_output) - len(dataset_variables["target"])) + index
        """,
        score=0,
    ),
    case(
        id="a local metric",
        code="""
            from galileo.schema.metrics import LocalMetricConfig

            def brevity(step):
                return len(step.output)

            metric = LocalMetricConfig[int](name="brevity", scorer_fn=brevity)
        """,
        score=1,
    ),
    case(id="a coroutine", code="async def scorer_fn(step_object):\n    return 0.25\n", score=0.25),
    case(
        id="another name, declared",
        contract=Contract("galileo"),
        settings=EvaluatorSettings(entry="f"),
        code="def f(trace_or_span):\n    return trace_or_span.output == '4'\n",
        score=1.0,
    ),
    case(
        id="a helper with that name is not an evaluator",
        row=OURS,
        recognised=Contract.EVALUATE,
        code="def scorer_fn(a):\n    return a\n\ndef evaluate(inputs, outputs, trace):\n    return scorer_fn(0.5)\n",
        score=0.5,
    ),
    case(
        id="an unused name of the package",
        code="from galileo import GalileoLogger\n" + returns("1"),
    ),
    case(
        id="older arguments from a step",
        row=Row(
            variables={
                "step_object": {
                    "type": "llm",
                    "input": [{"role": "user", "content": "2+2"}],
                    "output": {"role": "assistant", "content": "4"},
                    "dataset_output": "4",
                }
            }
        ),
        code="def scorer_fn(*, index, node_input, node_output, node_id: Optional[UUID], dataset_variables: Dict[str, str], **kwargs):\n    return float((index, node_input, node_output, dataset_variables['target']) == (0, '2+2', '4', '4'))\n",
        score=1.0,
        warnings=frozenset({"prebound"}),
    ),
]
