"""LangSmith's evaluators: functions for its website and for its SDKs, and the feedback that LangSmith stores.

The expected results follow langsmith 0.15.0 (PyPI) and 0.12.0 (npm), and the documentation of evaluators on
LangSmith's website.
"""

from functools import partial
from typing import Any

from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from tests.dialects.cases import NativeCase

QUESTION = {"question": "capital of France"}
PARIS = {
    "run": {"inputs": QUESTION, "outputs": {"answer": "Paris"}},
    "example": {"inputs": QUESTION, "outputs": {"answer": "Paris"}},
}
ROW = Row(variables=PARIS)
ONLINE = Row(variables={"run": PARIS["run"]})
OURS = Row({**QUESTION, "correct_answer": "Paris"}, "Paris")

case = partial(NativeCase, row=ROW, recognised=Contract("langsmith"))
javascript = partial(case, language=Language.JAVASCRIPT)
typescript = partial(case, language=Language.TYPESCRIPT)
refused = partial(case, status="failed", error="invalid_result", native=[])


def one(key: str, score: Any = None, value: Any = None, comment: Any = None, **more: Any) -> dict[str, Any]:
    """Return what LangSmith stores for a piece of feedback."""
    return {"key": key, "score": score, "value": value, "comment": comment, **more}


def returns(value: str) -> str:
    """Return code for LangSmith's SDK: a function that returns this expression."""
    return f"def judge(outputs, reference_outputs):\n    return {value}\n"


def pages(value: str) -> str:
    """Return code for LangSmith's website: a function that returns this expression."""
    return f"def perform_eval(run, example):\n    return {value}\n"


CASES = [
    case(id="the only function is private", code="def _has_answer(run, example):\n    return {'key': 'has_answer', 'score': int(bool(run.outputs.get('answer')))}\n", score=1),
    case(id="a helper that the evaluator calls", code="from langsmith.schemas import Run, Example\n\ndef text_of(run: Run, example: Example):\n    return run.outputs['answer']\n\ndef same(run: Run, example: Example):\n    return {'key': 'same', 'score': text_of(run, example) == 'Paris'}\n", score=1.0),
    case(id="a class beside the function that runs experiments", recognised=None, status="failed", error="load_error", message="an object of Service cannot be created without rag", code="from langsmith.evaluation import evaluate\n\nclass Service:\n    def __init__(self, rag):\n        self.rag = rag\n\n    def score(self, answer, reference):\n        return 1.0\n"),
    case(id="an evaluator beside the function that runs experiments", code="from langsmith import evaluate\n\ndef exact(run, example):\n    return {'score': 0.75}\n\nif __name__ == '__main__':\n    evaluate(None, evaluators=[exact])\n", score=0.75),
    case(id="a list names the evaluator", code="def close(run, example):\n    return {'score': 0.25}\n\ndef exact(run, example):\n    return {'score': 0.75}\n\nevaluators = [exact]\n", score=0.75),
    case(id="bool under the function's name", code="def correct(outputs: dict, reference_outputs: dict) -> bool:\n    return outputs['answer'] == reference_outputs['answer']\n", native=[one("correct", True)], score=1.0, passed=True, metrics={"score": 1.0, "correct": 1.0}),
    case(id="evaluate with three parameters of the SDK", code="def evaluate(inputs, outputs, reference_outputs):\n    return float(outputs == reference_outputs)\n", native=[one("evaluate", 1.0)], score=1.0),
    case(id="a number out of range is kept", code=returns("4"), native=[one("judge", 4)], score=4, warnings=frozenset({"out_of_range"})),
    case(id="text is a value", code=returns("'polite'"), native=[one("judge", value="polite")], score=None, label="polite"),
    case(
        id="attributes of run and example, an object with a key",
        code="""
            def exact(run, example):
                ok = run.outputs["answer"] == example.outputs["answer"] and run.error is None
                return {"key": "exact", "score": int(ok), "comment": "same" if ok else "different"}
        """,
        native=[one("exact", 1, comment="same")], reason="same",
    ),
    case(id="keys of run and example", code="def f(run, example):\n    return run['outputs'] == example['outputs'] and run.get('x') is None\n", native=[one("f", True)]),
    case(id="inputs only, by settings.entry", settings=EvaluatorSettings(entry="size"), code="def size(inputs, outputs):\n    return len(inputs) / 2\n\ndef other(outputs):\n    return 0\n", native=[one("size", 0.5)]),
    case(id="a parameter with a default needs no value", code="def f(reference_outputs, strict=True):\n    return strict\n", native=[one("f", True)]),
    case(id="variables with the names of the parameters", row=Row(variables={"inputs": {"a": 1}, "outputs": {"b": 2}, "reference_outputs": {"b": 2}}), code="def f(inputs, outputs, reference_outputs):\n    return inputs['a'] == 1 and outputs == reference_outputs\n", native=[one("f", True)]),
    case(id="an evaluator beside a program's main", code="def f(outputs, reference_outputs):\n    return outputs == reference_outputs\n\ndef main(argv=None):\n    print(argv)\n", native=[one("f", True)]),
    case(id="keyword-only parameters", code="def f(*, outputs, reference_outputs):\n    return outputs == reference_outputs\n", native=[one("f", True)]),
    case(id="without an example", row=ONLINE, code="def f(run, example, inputs, reference_outputs):\n    return {'score': example is None, 'comment': str((inputs, reference_outputs))}\n", native=[one("f", True, comment="({}, {})")]),
    case(id="two parameters of any name, declared", contract=Contract("langsmith"), code="def f(a, b):\n    return a.outputs == b.outputs\n", native=[one("f", True)]),
    case(id="a run and an example by their types", code="from langsmith.schemas import Example, Run\n\ndef f(r: Run, e: Example) -> dict:\n    return {'score': int(r.outputs == e.outputs)}\n", native=[one("f", 1)]),
    case(id="root_run and example", code="def f(root_run, example):\n    return {'score': int(root_run.outputs == example.outputs)}\n", native=[one("f", 1)]),
    case(id="one parameter of another name", contract=Contract("langsmith"), code="def f(answer):\n    return 1\n", recognised=None, status="failed", error="binding_error", message="reference_outputs"),
    case(id="several functions", contract=Contract("langsmith"), code="def f(outputs):\n    return 1\n\ndef g(outputs):\n    return 0\n", score=0.5, metrics={"f": 1, "g": 0}, warnings=frozenset({"several_entries"})),
    case(
        id="a list of feedback", code=returns("[{'key': 'a', 'score': 1}, {'key': 'b', 'score': 0.5, 'comment': 'half'}, {'key': 'c', 'value': 'red'}]"),
        native=[one("a", 1), one("b", 0.5, comment="half"), one("c", value="red")], score=0.75, reason="b: half", label="red", metrics={"score": 0.75, "a": 1, "b": 0.5}, warnings=frozenset({"several_scores"}),
    ),
    case(id="a list of feedback, of which a text is chosen", settings=EvaluatorSettings(score_output="c"), code=returns("[{'key': 'a', 'score': 1}, {'key': 'c', 'value': 'red'}]"), score=None, label="red", metrics={"a": 1}, warnings=frozenset({"no_score"})),
    case(id="a list of feedback without the chosen item", settings=EvaluatorSettings(score_output="b"), code=returns("[{'key': 'a', 'score': 1}]"), native=[one("a", 1)], status="failed", error="invalid_result", message="settings.score_output is 'b'"),
    case(id="an object of results", code=returns("{'results': [{'key': 'a', 'score': 0.5}]}"), native=[one("a", 0.5)]),
    case(id="a comment alone", code=returns("{'comment': 'seen'}"), native=[one("judge", comment="seen")], score=None, reason="seen"),
    case(id="the types of a nested value and of the evaluator's own", row=Row(variables={"inputs": {}, "outputs": {"answer": "{}"}, "reference_outputs": {"wanted": {"a": 1}}}), code="import json\n\ndef same_shape(outputs, reference_outputs):\n    own, wanted = json.loads(outputs['answer']), reference_outputs['wanted']\n    return 0.5 if isinstance(own, type(wanted)) and type(own) == type(wanted) else 0\n", score=0.5),
    case(id="further fields", code=returns("{'score': 1, 'metadata': {'n': 1}, 'correction': {'answer': 'x'}}"), native=[one("judge", 1, metadata={"n": 1}, correction={"answer": "x"})]),
    case(
        id="results of the package", code="from langsmith.evaluation import EvaluationResult, EvaluationResults\nfrom langsmith.schemas import Example, Run\n\ndef f(run: Run, example: Example) -> EvaluationResult:\n    return EvaluationResult(key='k', score=0.5, comment='c')\n",
        native=[one("k", 0.5, comment="c")],
    ),
    case(id="a list of results of the package", code="from langsmith.evaluation import EvaluationResult as R\n\ndef f(run, example):\n    return {'results': [R(key='a', score=1), R(key='b', value='x')]}\n", native=[one("a", 1), one("b", value="x")]),
    case(id="a client beside the function", code="from langsmith import Client, traceable\n\nclient = Client()\n\n@traceable\ndef correct(outputs, reference_outputs):\n    return True\n", native=[one("correct", True)]),
    case(id="the client cannot be used", code="from langsmith import Client\n\ndef f(run, example):\n    Client().create_feedback(run.id, 'x')\n", status="failed", error="user_exception", message="langsmith==0.15.0"),
    case(id="a coroutine is awaited", code="import asyncio\n\nasync def later(outputs, reference_outputs):\n    await asyncio.sleep(0)\n    return 0.5\n", native=[one("later", 0.5)]),
    *[
        refused(id=f"refuses {value}", code=returns(value))
        for value in ("None", "''", "{}", "[]", "(1, 'x')", "{'correctness': 1}", "{'score': 1, 'correctness': 1}", "{'score': '1'}", "[{'score': 1}]", "[1]", "{1}")
    ],
    case(id="an exception", code=returns("outputs['missing']"), status="failed", error="user_exception", line=2),
    case(id="pages: feedback by name", code=pages("{'exact': run['outputs'] == example['outputs'], 'comment': 'compared'}"), native=[one("exact", True)], score=1.0, passed=True, reason="compared"),
    case(id="pages: several pieces of feedback", code=pages("{'a': 1, 'b': 0.5, 'tone': 'kind'}"), native=[one("a", 1), one("b", 0.5), one("tone", value="kind")], score=None, label="kind", metrics={"a": 1, "b": 0.5}, warnings=frozenset({"no_score"})),
    case(id="pages: several pieces of feedback, of which one is chosen", settings=EvaluatorSettings(score_output="b"), code=pages("{'a': 1, 'b': 0.5}"), score=0.5, metrics={"score": 0.5, "a": 1, "b": 0.5}),
    case(id="pages: the chosen feedback is None", settings=EvaluatorSettings(score_output="b"), code=pages("{'a': 1, 'b': None}"), native=[one("a", 1)], score=None, metrics={"a": 1}, warnings=frozenset({"no_score"})),
    case(id="pages: no feedback counts", settings=EvaluatorSettings(score_output="c"), code=pages("{'a': 1}"), native=[one("a", 1)], status="failed", error="invalid_result", message="settings.score_output is 'c'"),
    case(id="pages: score and comment", code=pages("{'score': 0.5, 'comment': 'half'}"), native=[one("perform_eval", 0.5, comment="half")], score=0.5, reason="half"),
    case(id="pages: key, score and comment", code=pages("{'key': 'k', 'score': 0.5, 'comment': 'half'}"), native=[one("k", 0.5, comment="half")]),
    case(id="pages: online", row=ONLINE, code="def perform_eval(run):\n    return {'length': len(run['outputs']['answer'])}\n", native=[one("length", 5)], score=5),
    case(id="pages: both", row=ONLINE, code="def perform_eval(run, example=None):\n    return {'online': example is None}\n", native=[one("online", True)]),
    refused(id="pages: nothing", code=pages("None")),
    case(id="pages: np is not available without the package", code=pages("{'x': float(np.mean([1]))}"), status="failed", error="user_exception", message="np"),
    case(id="a row in the host's form", row=OURS, code="def f(inputs, outputs, reference_outputs):\n    return {'score': outputs == reference_outputs, 'comment': str((inputs, outputs))}\n", score=1.0, reason="({'question': 'capital of France'}, {'output': 'Paris'})"),
    case(id="variables without a run", row=Row(variables={"outputs": {}}), code=returns("1"), status="failed", error="missing_input", message="'run'"),
    javascript(id="JavaScript: pages", code="function performEval(run, example) { return { exact: run.outputs.answer === example.outputs.answer } }", native=[one("exact", True)], score=1.0),
    javascript(id="JavaScript: pages in snake case", code="function perform_eval(run) { return { score: 0.5, comment: 'half' } }", native=[one("perform_eval", 0.5, comment="half")]),
    javascript(id="JavaScript: one object", code="const correct = ({ outputs, referenceOutputs }) => ({ key: 'correct', score: outputs.answer === referenceOutputs.answer })", native=[one("correct", True)]),
    javascript(id="JavaScript: run and example", code="async function exact(run, example) { return { score: Number(run.outputs.answer === example.outputs.answer) } }\nmodule.exports = { exact }", native=[one("exact", 1)]),
    javascript(id="JavaScript: a list", code="module.exports = ({ outputs, referenceOutputs }) => [{ key: 'a', score: 1 }, { key: 'b', score: 0 }]", native=[one("a", 1), one("b", 0)]),
    javascript(id="JavaScript: a number is refused", code="function judge({ outputs, referenceOutputs }) { return 1 }", status="failed", error="invalid_result"),
    javascript(id="JavaScript: nothing is refused", code="function judge({ outputs, referenceOutputs }) {}", status="failed", error="invalid_result"),
    typescript(
        id="TypeScript: an exported function", row=OURS,
        code="export async function correct({ outputs, referenceOutputs }: { outputs: any; referenceOutputs?: any }): Promise<{ key: string; score: number }> {\n  return { key: 'correct', score: outputs.output === referenceOutputs.output ? 1 : 0 };\n}",
        native=[one("correct", 1)],
    ),
]  # fmt: skip
