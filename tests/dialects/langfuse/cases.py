"""Code evaluators of Langfuse, in Python, TypeScript and JavaScript, and the values that Langfuse stores for their
scores.

The expected results follow langfuse/langfuse@62751446: its runners and `parseDispatchResult`.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from tests.dialects.cases import NativeCase

OBSERVED = {"input": "2+2?", "output": "4", "metadata": {"lang": "en"}, "toolCalls": []}
PLAIN = Row(variables={"observation": OBSERVED})
ITEM = Row(variables={"observation": OBSERVED, "experiment": {"itemExpectedOutput": "4", "itemMetadata": {"level": 1}}})
CALL = {"id": "c1", "name": "search", "arguments": {"q": "x"}, "type": "function", "index": 0}
CALLS = Row(variables={"observation": {**OBSERVED, "toolCalls": [CALL]}})
OURS = Row({"question": "2+2?", "correct_answer": "4"}, "4")

case = partial(NativeCase, row=PLAIN, recognised=Contract("langfuse"))
typescript = partial(case, language=Language.TYPESCRIPT)
javascript = partial(case, language=Language.JAVASCRIPT)
refused = partial(case, status="failed", error="invalid_result", native=[])


def returns(value: str) -> str:
    """Return the code of an evaluator that returns this expression."""
    return f"def evaluate(ctx):\n    return {value}\n"


def one(name: str, value: Any, kind: str | None = None, **more: Any) -> list[dict[str, Any]]:
    """Return what Langfuse stores for a single score."""
    return [{"name": name, "value": value, **({} if kind is None else {"dataType": kind}), **more}]


def typed(case_id: str, value: str, kind: str, stored: Any) -> NativeCase:
    """Return a case with a score of the data type `kind`. The code returns `value`, and Langfuse stores `stored`; None
    stands for a value that Langfuse refuses.
    """
    code = returns(f"{{'scores': [{{'name': 'x', 'value': {value}, 'dataType': {kind!r}}}]}}")
    if stored is None:
        return refused(id=case_id, code=code, message="scores[0].value")
    return case(id=case_id, code=code, native=one("x", stored, kind))


CASES = [
    case(
        id="Langfuse's classes are available without an import",
        code="""
            def evaluate(ctx):
                right = ctx.observation.output == "4"
                return EvaluationResult(scores=[Score(name="exact", value=1 if right else 0, data_type="NUMERIC")])
        """,
        native=one("exact", 1, "NUMERIC"),
        score=1,
        passed=None,
        metrics={"score": 1, "exact": 1},
        warnings=frozenset({"prebound"}),
    ),
    case(
        id="annotations and the expected output",
        row=ITEM,
        code="""
            def evaluate(c: EvaluationContext) -> EvaluationResult:
                expected = c.experiment.item_expected_output if c.experiment else None
                same = c.observation.output == expected
                return EvaluationResult(scores=[Score("match", same, "BOOLEAN", comment=f"level {c.experiment.item_metadata['level']}")])
        """,
        native=one("match", 1, "BOOLEAN", comment="level 1"),
        score=1,
        passed=True,
        reason="level 1",
    ),
    case(
        id="outside of experiments there is no ground truth",
        code=returns("{'scores': [{'name': 'none', 'value': 'yes' if ctx.experiment is None else 'no'}]}"),
        native=one("none", "yes"),
        score=None,
        label="yes",
    ),
    case(
        id="keys in snake case are converted in a score, but not in its metadata",
        code=returns("{'scores': [{'name': 'n', 'value': 1, 'data_type': 'NUMERIC', 'config_id': 'c', 'metadata': {'data_type': 'kept'}}]}"),
        native=one("n", 1, "NUMERIC", configId="c", metadata={"data_type": "kept"}),
    ),
    case(
        id="a coroutine is awaited",
        code="async def evaluate(ctx):\n    return {'scores': [{'name': 'a', 'value': 0.5}]}\n",
        native=one("a", 0.5),
    ),
    case(
        id="tool calls are objects",
        row=CALLS,
        code="""
            def evaluate(ctx):
                call: ToolCall = ctx.observation.tool_calls[0]
                return EvaluationResult([Score(call.name, len(call.arguments), comment=f"{call.type} {call.id} {call.index}")])
        """,
        native=one("search", 1, comment="function c1 0"),
    ),
    case(
        id="the mean of the numbers is the score, the first text the label",
        code="""
            def evaluate(ctx):
                return EvaluationResult(scores=[
                    Score(name="tone", value="kind", data_type="CATEGORICAL"),
                    Score(name="a", value=0.25),
                    Score(name="b", value=False, data_type="BOOLEAN"),
                ])
        """,
        native=[*one("tone", "kind", "CATEGORICAL"), *one("a", 0.25), *one("b", 0, "BOOLEAN")],
        score=0.125,
        passed=None,
        label="kind",
        metrics={"score": 0.125, "a": 0.25, "b": 0},
        warnings=frozenset({"several_scores"}),
    ),
    case(
        id="no score with the chosen name",
        settings=EvaluatorSettings(score_output="faithfulness"),
        code=returns("{'scores': [{'name': 'relevance', 'value': 0.2}]}"),
        native=one("relevance", 0.2),
        status="failed",
        error="invalid_result",
        message="name one of its scores: 'relevance'",
    ),
    case(id="text without a type", code=returns("{'scores': [{'name': 'x', 'value': 'red'}]}"), native=one("x", "red"), label="red"),
    typed("a number is numeric", "2.5", "NUMERIC", 2.5),
    typed("a numeric text is not", "'0.5'", "NUMERIC", None),
    typed("a bool is not numeric", "True", "NUMERIC", None),
    typed("a boolean as text", "' TRUE '", "BOOLEAN", 1),
    typed("a boolean as 0", "0", "BOOLEAN", 0),
    typed("a boolean as text 0", "'0'", "BOOLEAN", 0),
    typed("two is not a boolean", "2", "BOOLEAN", None),
    typed("yes is not a boolean", "'yes'", "BOOLEAN", None),
    typed("a category is text", "1", "CATEGORICAL", None),
    typed("a text of 500 characters", "'x' * 500", "TEXT", "x" * 500),
    typed("a text of 501 characters", "'x' * 501", "TEXT", None),
    typed("an empty text", "''", "TEXT", None),
    refused(
        id="a type that Langfuse does not have",
        code=returns("{'scores': [{'name': 'x', 'value': 1, 'dataType': 'INTEGER'}]}"),
        message="scores[0].dataType",
    ),
    refused(id="a bool without a type", code=returns("{'scores': [{'name': 'x', 'value': True}]}")),
    refused(id="a score without a name", code=returns("{'scores': [{'value': 1}]}"), message="scores[0].name"),
    refused(id="a score without a value", code=returns("{'scores': [{'name': 'x'}]}")),
    refused(id="no scores", code=returns("{'scores': []}")),
    refused(id="a bare number", code=returns("1.0"), message="an object with a list `scores`"),
    refused(id="nothing", code=returns("None")),
    refused(id="a tuple becomes text", code=returns("{'scores': ({'name': 'x', 'value': 1},)}")),
    case(id="NaN", code=returns("{'scores': [{'name': 'x', 'value': float('nan')}]}"), status="failed", error="non_finite"),
    case(
        id="an exception has its line",
        code="def evaluate(ctx):\n    data = {}\n    return data['text']\n",
        status="failed",
        error="user_exception",
        line=3,
    ),
    case(id="a syntax error", code="def evaluate(ctx)\n    return 1\n", recognised=None, status="failed", error="syntax_error", line=1),
    case(
        id="modules are not available without an import",
        code=returns("{'scores': [{'name': 'x', 'value': json.loads('1')}]}"),
        status="failed",
        error="user_exception",
        message="import json",
    ),
    case(
        id="a row in the host's form",
        row=OURS,
        code="""
            def evaluate(ctx):
                same = ctx.observation.output == ctx.experiment.item_expected_output
                return {"scores": [{"name": "same", "value": same, "dataType": "BOOLEAN", "comment": str(ctx.observation.input)}]}
        """,
        score=1,
        passed=True,
        reason="{'question': '2+2?'}",
    ),
    case(
        id="the ground truth under another name",
        row=Row({"gold": "5"}, "4"),
        settings=EvaluatorSettings(correct_answer_key="gold"),
        code=returns("{'scores': [{'name': 'x', 'value': float(ctx.experiment.item_expected_output)}]}"),
        score=5.0,
        warnings=frozenset({"out_of_range"}),
    ),
    case(
        id="variables that are not a row of Langfuse",
        row=Row(variables={"output": "4"}),
        code=returns("1"),
        status="failed",
        error="missing_input",
        message="'observation'",
    ),
    case(
        id="declared, with a name of its own for the parameter",
        contract=Contract("langfuse"),
        code="def evaluate(c):\n    return {'scores': [{'name': 'x', 'value': 1}]}\n",
        native=one("x", 1),
    ),
    typescript(
        id="typed function",
        code="""
            type Ctx = { observation: { output: unknown } };
            function evaluate(ctx: Ctx) {
              return { scores: [{ name: "exact", value: ctx.observation.output === "4" ? 1 : 0, dataType: "NUMERIC" as const }] };
            }
        """,
        native=one("exact", 1, "NUMERIC"),
        score=1,
    ),
    typescript(
        id="async arrow function",
        row=ITEM,
        code="""
            const evaluate = async (ctx: EvaluationContext) => {
              const same = ctx.observation.output === ctx.experiment?.itemExpectedOutput;
              return { scores: [{ name: "match", value: same, dataType: "BOOLEAN", comment: "compared" }] };
            };
        """,
        native=one("match", 1, "BOOLEAN", comment="compared"),
        passed=True,
    ),
    typescript(id="an enum", code="enum Mood { Good }\nfunction evaluate(ctx: any) { return { scores: [{ name: 'm', value: Mood.Good }] }; }", recognised=None, status="failed", error="syntax_error", message="enum"),
    typescript(id="an export", code="export function evaluate(ctx: any) { return { scores: [{ name: 'm', value: 1 }] }; }", recognised=None, status="failed", error="syntax_error", message="export"),
    typescript(id="throws", code="function evaluate(ctx: any) { throw new Error('no output'); }", status="failed", error="user_exception", message="no output"),
    typescript(id="takes nothing", recognised=None, code="function evaluate() { return 1; }", status="failed", error="binding_error", message="set `contract`"),
    typescript(id="returns a number", contract=Contract("langfuse"), code="function evaluate() { return 1; }", status="failed", error="invalid_result"),
    typescript(id="no function evaluate", contract=Contract("langfuse"), code="function score() { return { scores: [] }; }", recognised=None, status="failed", error="entry_not_found"),
    javascript(
        id="JavaScript, destructured",
        code="function evaluate({ observation: { output } }) { return { scores: [{ name: 'n', value: output.length }] }; }",
        native=one("n", 1),
    ),
    javascript(
        id="JavaScript, a method",
        code="class Judge { evaluate(ctx) { return { scores: [{ name: 'n', value: ctx.observation.output.length }] } } }\nmodule.exports = new Judge()",
        native=one("n", 1),
    ),
    javascript(id="JavaScript, a row in the host's form", row=OURS, code="const evaluate = (ctx) => ({ scores: [{ name: 'n', value: Number(ctx.experiment.itemExpectedOutput === ctx.observation.output) }] })", score=1),
]  # fmt: skip
