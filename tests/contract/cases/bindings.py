"""Cases about the arguments that an evaluator's function gets: positions, names, falsy outputs, missing answers."""

from evaluator_host.types.evaluator import Contract
from tests.contract.cases.case import Case, failed, javascript, python, scored, typescript

FALSY = {"empty-text": "", "empty-object": {}, "empty-list": [], "zero": 0, "false": False, "null": None}


def echo_cases() -> list[Case]:
    """Return cases in which JSON outputs of every kind must arrive as they were sent."""
    cases = []
    for name, outputs in FALSY.items():
        row = {"inputs": {"want": outputs}, "outputs": outputs}
        py = "import json\n\ndef evaluate(i, o, t):\n    return json.dumps(o) == json.dumps(i['want']) and t is None"
        js = "const evaluate = (i, o, t) => JSON.stringify(o) === JSON.stringify(i.want) && t === null;"
        cases.append(python(f"outputs-{name}", py, scored(1.0, passed=True), **row))
        cases.append(javascript(f"outputs-{name}", js, scored(1.0, passed=True), **row))
    return cases


CASES = [
    *echo_cases(),
    python("ints-stay-ints", "def evaluate(i, o, t):\n    return type(i['n']) is int and i['n'] == 2**63", scored(1.0, passed=True), inputs={"n": 2**63}),
    python("v1-arguments", "def evaluate(p, i, o, c):\n    return p == {} and i == {'gold': 'x', 'q': 1} and o == 'y' and c == 'x'", scored(1.0, passed=True, contract="evaluate-v1"), inputs={"gold": "x", "q": 1}, outputs="y", correct_answer_key="gold"),
    python("v1-null-answer", "def evaluate(p, i, o, c):\n    return c is None", scored(1.0, passed=True), inputs={"correct_answer": None}),
    python("v1-substring", "def evaluate(app_params, inputs, output, correct_answer):\n    return 1.0 if output in correct_answer else 0.0", scored(1), inputs={"gold": "It is Paris"}, outputs="Paris", correct_answer_key="gold"),
    python("v1-missing-answer", "def evaluate(p, i, o, c):\n    raise SystemExit", failed("missing_input", "'goal', 'q'", contract="evaluate-v1"), inputs={"goal": 1, "q": 2}, correct_answer_key="gold"),
    javascript("v1-missing-answer", "function evaluate(p, i, o, c) { return 1; }", failed("missing_input", "correct_answer"), inputs={"q": 2}),
    python("v1-declared", "def evaluate(*args):\n    return len(args) / 10", scored(0.4, contract="evaluate-v1"), contract=Contract.EVALUATE_V1, inputs={"correct_answer": 1}),
    python("main-any-order", "def main(target, completion):\n    return {'score': float(completion == 'a' and target == 'b')}", scored(1, contract="main"), variables={"completion": "a", "target": "b"}),
    python("main-other-names", "def main(question, context, grade):\n    return {'score': grade, 'reason': question + context}", scored(0.5, reason="qc"), variables={"grade": 0.5, "context": "c", "question": "q"}),
    python("main-kwargs", "def main(**kwargs):\n    return {'score': len(kwargs) / 10, 'reason': ','.join(sorted(kwargs))}", scored(0.3, reason="a,b,c"), variables={"a": 1, "b": 2, "c": 3}),
    python("main-named-and-kwargs", "def main(a, **rest):\n    return {'score': len(rest) / 10}", scored(0.2), variables={"a": 1, "b": 2, "c": 3}),
    python("main-keyword-only", "def main(*, completion, target):\n    return {'score': float(completion == target)}", scored(1), variables={"completion": "a", "target": "a"}),
    python("main-default", "def main(completion, limit=3):\n    return {'score': float(len(completion) <= limit)}", scored(1), variables={"completion": "abc"}),
    python("main-async", "async def main(completion):\n    return {'score': 1}", scored(1, contract="main"), variables={"completion": ""}),
    python("main-missing", "def main(completion, target):\n    return {'score': 1}", failed("missing_input", "target"), variables={"completion": "a"}),
    python("main-from-row", "def main(completion, target):\n    return {'score': float(completion == target)}", scored(1), inputs={"target": "x", "unused": 1}, outputs="x"),
    python("main-output-names", "def main(output, outputs, completion):\n    return {'score': float(output == outputs == completion == 'x')}", scored(1), outputs="x"),
    python("main-outputs-beat-inputs", "def main(output, completion):\n    return {'score': 1, 'reason': output + completion}", scored(1, reason="xx"), inputs={"output": "old"}, outputs="x"),
    python("main-column-without-outputs", "def main(completion):\n    return {'score': 1, 'reason': completion}", scored(1, reason="mine"), inputs={"completion": "mine"}),
    python("main-no-parameters", "def main():\n    return {'score': 1}", scored(1), inputs={"a": 1}),
    python(
        "main-attribute-access",
        """
        import json

        def main(completion):
            ok = completion.user.name == "Ada" and completion["user"]["tags"][0].id == 7
            ok = ok and isinstance(completion, dict) and isinstance(completion.user.tags, list)
            ok = ok and json.loads(json.dumps(completion)) == completion
            return {"score": float(ok)}
        """,
        scored(1),
        variables={"completion": {"user": {"name": "Ada", "tags": [{"id": 7}]}}},
    ),
    python("main-text-is-text", "def main(completion):\n    return {'score': float(completion.strip() == 'a' and isinstance(completion, str))}", scored(1), variables={"completion": " a\n"}),
    python("main-json-without-import", "def main(completion):\n    return {'score': json.loads(completion)['n']}", scored(0.5), variables={"completion": '{"n": 0.5}'}),
    javascript("main-object", "function main(variables) { return { score: variables.completion === variables.target ? 1 : 0 }; }", scored(1, contract="main"), variables={"completion": "a", "target": "a"}),
    javascript("main-destructured", "const main = async ({ completion, target = 'a' }) => ({ score: Number(completion === target) });", scored(1, contract="main"), variables={"completion": "a"}),
    javascript("main-from-row", "function main({ completion, output, outputs, target }) { return { score: Number(completion === output && output === outputs && target === 't') }; }", scored(1), inputs={"target": "t"}, outputs={"a": 1}["a"]),
    typescript("main-typed", "async function main(inputs: { completion: string }): Promise<{ score: number }> {\n  return { score: inputs.completion.length };\n}", scored(3, contract="main", warnings="out_of_range"), variables={"completion": "abc"}),
    python("declared-evaluate-beats-names", "def evaluate(a, b, c, d=None):\n    return 0.5", scored(0.5, contract="evaluate"), contract=Contract.EVALUATE),
    python("evaluate-beside-main", "def evaluate(inputs, outputs, trace):\n    return 0.5\n\ndef main():\n    pass", scored(0.5), contract=Contract.EVALUATE),
]  # fmt: skip
