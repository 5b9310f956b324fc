"""Code with `main` is rewritten to `evaluate`, and back, with a proof; or it is refused with a reason."""

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.migrate.draft import Wish
from evaluator_host.migrate.generate import generated_rows
from evaluator_host.migrate.migrate import migrate, migration_context
from evaluator_host.migrate.syntax import Unreadable
from evaluator_host.migrate.worker import REWRITES
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.migrations import MigrationStatus
from evaluator_host.types.proof import ProofVerdict

PYTHON, JAVASCRIPT, TYPESCRIPT = Language
PAIRS = {
    "json": (
        PYTHON,
        (
            'def main(\n    completion: str,\n    target: str,\n) -> dict:\n    """Doc."""\n'
            "    try:\n        a, b = json.loads(completion), json.loads(target)\n    except ValueError:\n"
            '        return {"score": 0}\n    return {"score": float(a == b)}\n'
        ),
        (
            'import json\n\n\ndef evaluate(\n    inputs: dict,\n    outputs: str,\n    trace: dict,\n) -> dict:\n    """Doc."""\n'
            '    target = inputs["target"]\n'
            "    try:\n        a, b = json.loads(outputs), json.loads(target)\n    except ValueError:\n"
            '        return {"score": 0}\n    return {"score": float(a == b)}\n'
        ),
    ),
    "defaults": (
        PYTHON,
        (
            'def main(target, weight=2, output="", *, note=None):\n'
            '    return {"score": weight * (str(output) == str(target)), "note": float(note is None)}\n'
        ),
        (
            "def evaluate(inputs, outputs, trace):\n"
            '    return {"score": inputs.get("weight", 2) * (str(outputs) == str(inputs["target"])), '
            '"note": float(inputs.get("note") is None)}\n'
        ),
    ),
    "names taken": (
        PYTHON,
        'async def main(completion, inputs, trace):\n    outputs = str(completion)\n    return {"score": outputs == str(inputs)}\n',
        (
            "async def evaluate(_inputs, completion, _trace):\n    outputs = str(completion)\n"
            '    return {"score": outputs == str(_inputs["inputs"])}\n'
        ),
    ),
}
PAIRS |= {
    "members": (
        TYPESCRIPT,
        (
            "async function main(variables: {\n  completion: string,\n  target: string,\n}): Promise<{ score: number }> {\n"
            "  return { score: String(variables.target).length + String(variables.completion).length };\n}\n"
        ),
        (
            "async function evaluate(inputs: { target: string }, outputs: string, trace: Record<string, any>)"
            ": Promise<{ score: number }> {\n"
            "  return { score: String(inputs.target).length + String(outputs).length };\n}\n"
        ),
    ),
    "taken apart": (
        JAVASCRIPT,
        (
            "const main = (variables) => {\n  const { completion, target = 'x' } = variables;\n"
            "  return { score: completion === target ? 1 : 0 };\n};\nmodule.exports = { main };\n"
        ),
        (
            "const evaluate = (inputs, outputs, trace) => {\n  const completion = outputs, { target = 'x' } = inputs;\n"
            "  return { score: completion === target ? 1 : 0 };\n};\nmodule.exports = { evaluate };\n"
        ),
    ),
}
BACK = {
    "columns": (
        PYTHON,
        (
            "def evaluate(inputs, outputs, trace):\n"
            '    correct_answer = inputs["correct_answer"]\n'
            '    if inputs.get("strict", False):\n        return {"score": outputs == correct_answer}\n'
            '    return {"score": str(outputs).lower() == str(correct_answer).lower()}\n'
        ),
        (
            "def main(completion, correct_answer, strict=False):\n"
            '    if strict:\n        return {"score": completion == correct_answer}\n'
            '    return {"score": str(completion).lower() == str(correct_answer).lower()}\n'
        ),
    ),
    "name kept": (
        PYTHON,
        'def evaluate(inputs, output, trace):\n    completion = str(output)\n    return {"score": completion == str(inputs["a"])}\n',
        'def main(output, a):\n    completion = str(output)\n    return {"score": completion == str(a)}\n',
    ),
}
BACK |= {
    "variables": (
        TYPESCRIPT,
        (
            "export function evaluate(inputs: any, outputs: any, trace: any): number {\n"
            "  return outputs === inputs.correct_answer || inputs['lax'] ? 1 : 0;\n}\n"
        ),
        (
            "export function main(variables: Record<string, any>): number {\n"
            "  return variables.completion === variables.correct_answer || variables['lax'] ? 1 : 0;\n}\n"
        ),
    ),
    "read once": (
        JAVASCRIPT,
        "function evaluate(inputs, outputs, trace) {\n  outputs = String(outputs);\n  return { score: outputs.length };\n}\n",
        (
            "function main(variables) {\n  let outputs = variables.completion;\n  outputs = String(outputs);\n"
            "  return { score: outputs.length };\n}\n"
        ),
    ),
}
REFUSED_JAVASCRIPT = [
    ("evaluate", "function main(v) {\n  return use(v);\n}\n", 2, "v is used as a whole"),
    (
        "evaluate",
        "const main = ({ completion }) => completion;\n",
        1,
        "destructures its parameter in the parameter list",
    ),
    (
        "evaluate",
        "function main(v) {\n  const trace = 1;\n  return v.x;\n}\n",
        2,
        "the code itself uses the name trace",
    ),
    ("evaluate", "function main(v) {\n  return v.x ? 1 : main({ x: 1 });\n}\n", 2, "the code itself uses main"),
    ("main", "function evaluate(i, o, t) {\n  return t ? 1 : 0;\n}\n", 2, "main gets no trace"),
    (
        "main",
        "function evaluate(i, o, t) {\n  return Object.keys(i).length;\n}\n",
        2,
        "main gets columns",
    ),
    (
        "main",
        "function evaluate(a, i, o, c) {\n  return 1;\n}\n",
        1,
        "only evaluate(inputs, outputs, trace) can become main()",
    ),
]
REFUSED = [
    ("evaluate", "def main(completion, **rest):\n    return {}\n", 1, "**rest accepts any arguments"),
    (
        "evaluate",
        "def main(completion):\n    return 1\n\n\nmain(completion='x')\n",
        5,
        "the code itself uses main",
    ),
    ("evaluate", "class main:\n    pass\n", 1, "main is not a plain function"),
    ("main", "def evaluate(inputs, outputs, trace):\n    return bool(trace)\n", 2, "main gets no trace"),
    ("main", "def evaluate(inputs, outputs, trace):\n    return len(inputs)\n", 2, "main gets columns"),
    ("main", "def evaluate(i, o, t):\n    a = 1\n    return i['a'] + a\n", 2, "the code itself uses the name a"),
    ("main", "def evaluate(i, o, t):\n    return i['a'] or i.get('a')\n", 2, "a is read with two different defaults"),
    ("main", "def evaluate(a, i, o, c):\n    return 1\n", 1, "only evaluate(inputs, outputs, trace) can become main()"),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.engine
async def test_main_becomes_evaluate(host: Service, name: str) -> None:
    language, before, after = PAIRS[name]
    migration = await migrate(Evaluator(before, language), context=migration_context(host, "default"))
    assert migration.code == after
    assert migration.proof is not None
    assert (migration.proof.verdict, migration.proof.scored > 10) == (ProofVerdict.PROVEN, True), migration.proof.text


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", BACK)
@pytest.mark.engine
async def test_evaluate_becomes_main(host: Service, name: str) -> None:
    language, before, after = BACK[name]
    migration = await migrate(Evaluator(before, language), context=migration_context(host, "default"), to=Contract.MAIN)
    assert migration.code == after
    assert migration.proof is not None
    assert (migration.proof.verdict, migration.proof.scored > 10) == (ProofVerdict.PROVEN, True), migration.proof.text
    again = await migrate(Evaluator(after, language), context=migration_context(host, "default"), to=Contract.MAIN)
    assert again.status is MigrationStatus.CURRENT


@pytest.mark.parametrize(("to", "code", "line", "reason"), REFUSED)
def test_ambiguous_code_is_refused_with_its_line(to: str, code: str, line: int, reason: str) -> None:
    with pytest.raises(Unreadable) as refused:
        REWRITES[PYTHON](code, Wish(to=to))
    assert reason in refused.value.reason
    assert refused.value.line == line


@pytest.mark.parametrize(("to", "code", "line", "reason"), REFUSED_JAVASCRIPT)
def test_ambiguous_javascript_is_refused(to: str, code: str, line: int, reason: str) -> None:
    for language in (JAVASCRIPT, TYPESCRIPT):
        with pytest.raises(Unreadable) as refused:
            REWRITES[language](code, Wish(to=to))
        assert reason in refused.value.reason
        assert refused.value.line == line


@pytest.mark.engine
async def test_a_result_that_only_one_contract_takes_is_a_difference(host: Service) -> None:
    code = "def main(completion, target):\n    return json.dumps({'score': 1})\n"
    migration = await migrate(Evaluator(code), [Row({"target": "x"}, "x")], context=migration_context(host, "default"))
    assert migration.proof is not None
    assert migration.proof.verdict is ProofVerdict.DIFFERS


@pytest.mark.sampled(4)
@pytest.mark.engine
@pytest.mark.parametrize(
    ("language", "code"),
    [
        (PYTHON, "def main(completion, target):\n    return {'score': float(completion == target)}\n"),
        (PYTHON, "def main(output, **rest):\n    return {'score': float(output == rest['target']), 'n': len(rest)}\n"),
        (JAVASCRIPT, "const main = (v) => ({ score: Number(v.completion === v.target) });\n"),
        (TYPESCRIPT, "const main = ({ output, ...rest }: any) => ({ score: Number(output === rest.target) });\n"),
    ],
)
async def test_outputs_are_those_of_the_row_and_not_of_an_older_column(
    host: Service, language: Language, code: str
) -> None:
    older = dict.fromkeys(("completion", "output", "outputs"), "old")
    rows = [Row({**older, "target": target}, "new") for target in ("new", "old")]
    context = migration_context(host, "default")
    migration = await migrate(Evaluator(code, language), rows, context=context, adapt=True)
    assert migration.proof is not None
    assert (migration.proof.verdict, migration.proof.scored) == (ProofVerdict.PROVEN, 2), migration.proof.text
    for made in (code, migration.code):
        assert made is not None
        scores = [(await host.evaluate(Evaluator(made, language), row)).score for row in rows]
        assert scores == [1.0, 0.0]


def test_some_generated_rows_have_an_older_output_in_a_column() -> None:
    rows = generated_rows("def main(completion, target): ...", ("", "", "completion", "target"), "target")
    older = [row for row in rows if row.inputs.get("completion", row.outputs) != row.outputs]
    assert len(older) > 2
    assert all(row.inputs["output"] == row.inputs["outputs"] == row.inputs["completion"] for row in older)
