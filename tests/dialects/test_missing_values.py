"""If code reads or compares outputs or columns that the row lacks, the result has a warning."""

import asyncio

import pytest

from evaluator_host.engine.contracts.parameters import row_notes
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import FunctionFacts, Loaded, ParameterFacts
from evaluator_host.types.warnings import RowWarnings
from tests.conftest import ON_BUBBLEWRAP

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
ROW = Row({"correct_answer": "4"}, "4")
READS = "def evaluate(row, said, trace):\n    {}\n"
SCRIPT = "function evaluate(row, said, trace) {{ {} }}"
UNASKED: list[tuple[Language, str]] = [
    *[
        (PYTHON, READS.format(body))
        for body in (
            "return said == row['a']",
            "return len(str(said))",
            "return 1.0 if said == row['a'] else 0.0",
            "if said == row['a']:\n        return 1\n    return 0",
            "if str(row['a']) in str(said): return 1\n    return 0",
            "return 0 if not isinstance(said, dict) else 1",
            "return {'score': 0.5, 'reason': f'{said} or nothing'}",
            "# if said is None: return 0\n    return said == row['a']",
            "'not said'\n    return said == row['a']",
            "return (lambda text: 1 if text else 0)(str(said))",
            "return 1 if said != '' and row['a'] else 0",
            "return any(one == said for one in row.values())",
            "return len([said for said in str(said)])",
            "return locals()['said'] == row['a']",
            "return vars().get('said') == 'a'",
            "return eval('said == 1')",
        )
    ],
    (PYTHON, "def evaluate(app_params, inputs, output, correct_answer):\n    return output in ('', 'a')\n"),
    (PYTHON, "def score(output, expected):\n    return 1.0 if output == expected else 0.0\n"),
    (PYTHON, "def main(output, a):\n    return {'score': 1.0 if output == a else 0.0}\n"),
    (PYTHON, "evaluate = lambda row, said, trace: 1.0 if said == row['a'] else 0.0"),
    (PYTHON, "class One:\n    def __call__(self, a, said, c):\n        return float(said == 1)\nevaluate = One()\n"),
    *[
        (JAVASCRIPT, SCRIPT.format(body))
        for body in (
            "return said === row.a",
            "return said === row.a ? 1 : 0",
            "if (said === row.a) return 1; return 0",
            "return String(said).length",
            "/* said === null */ return said == row.a ? 1 : 0",
            "const text = `${said}`; return text ? 1 : 0",
            "return typeof said === 'string' ? 1 : 0",
            "return row.said === said ? 1 : 0",
            "return eval('said === 1') ? 1 : 0",
        )
    ],
    (TYPESCRIPT, "export const evaluate = (row: any, said: string, t?: unknown) => (said === row.a ? 1 : 0)"),
    (
        TYPESCRIPT,
        "class One { evaluate(row: any, said: any, t: any) { return said === row.a ? 1 : 0 } }\nexport default new One()",
    ),
]
ASKED: list[tuple[Language, str]] = [
    *[
        (PYTHON, READS.format(body))
        for body in (
            "return row['a'] == 1",
            "return 0 if said is None else said == row['a']",
            "return (said or '') == row['a']",
            "return 0 if not said else 1",
            "said = row['a']\n    return said == 1",
            "if row and said: return 1\n    return 0",
            "return {'said': 1, 'score': 0.5}",
            "return 0 if None != said else 1",
            "return [said for said in row][0] == 'a'",
        )
    ],
    (PYTHON, "def evaluate(row, said, trace):\n    match said:\n        case None: return 0\n    return 1\n"),
    *[
        (JAVASCRIPT, SCRIPT.format(body))
        for body in (
            "return said?.length ?? 0",
            "return said === null ? 0 : 1",
            "return undefined != said ? 0 : 1",
            "while (!said) return 0; return 1",
            "return row.said === 1 ? 1 : 0",
            "return { score: 1, said: 2 }",
            "said = row.a; return said === 1 ? 1 : 0",
            "return ['a'].map((said) => said === row.a ? 1 : 0)[0]",
        )
    ],
    (TYPESCRIPT, "export const evaluate = (row: any, said: any, t?: unknown) => (said ? 1 : 0)"),
]


@pytest.mark.long
@ON_BUBBLEWRAP
async def test_a_row_without_the_outputs_that_the_code_reads_is_told_so(service: Service) -> None:
    for codes, warned in ((UNASKED, ["missing_outputs"]), (ASKED, [])):
        evaluators = [Evaluator(code, language) for language, code in codes]
        results = await asyncio.gather(
            *(service.evaluate(one, Row({"a": 1, "correct_answer": 1})) for one in evaluators)
        )
        told = {
            evaluator.code: (result.error, [note.code for note in result.warnings if note.code == "missing_outputs"])
            for evaluator, result in zip(evaluators, results, strict=True)
        }
        assert {code: given for code, given in told.items() if given != (None, warned)} == {}


def test_outputs_that_are_there_are_not_missed() -> None:
    facts = FunctionFacts("evaluate", 1, parameters=(ParameterFacts("row"), ParameterFacts("said", read=True)))
    loaded = Loaded(Contract.EVALUATE, "declared", "", "evaluate", ("row", "said"), facts=(facts,))
    [note] = row_notes(Evaluator(""), loaded, Row({"a": 1}))
    assert note.message == "the code reads `said`, which is None because the row has no outputs"
    assert row_notes(Evaluator(""), loaded, Row({"a": 1}, "Paris")) == ()
    assert row_notes(Evaluator(""), loaded, Row({"a": 1}, messages=[{"role": "user", "content": "x"}])) == ()


@ON_BUBBLEWRAP
async def test_a_score_without_outputs_comes_with_a_warning(service: Service) -> None:
    code = "def evaluate(app_params, inputs, output, correct_answer):\n    return float(output == correct_answer)\n"
    result = await service.evaluate(Evaluator(code), Row({"correct_answer": "Paris"}))
    assert (result.score, [note.code for note in result.warnings]) == (0, ["missing_outputs"])


TYPED = Row({"expected": "4", "n": 1}, {"answer": "4"})
BARE = Row({"expected": "4", "n": 1}, "4")
FUNCTION = "function evaluate(row, out) {{ {} }}"
COMPARED: list[tuple[str, Row, str | None]] = [  # body of the function, a row, and the beginning of the warning
    (
        "return row.expcted === out.anwser",
        TYPED,
        "the code compares row.expcted with out.anwser, but the row has neither",
    ),
    (
        "const { expcted } = row; const said = out.anwser; return said == expcted",
        TYPED,
        "the code compares out.anwser with row.expcted, but the row has neither",
    ),
    (
        "return String(row.expcted).trim() === `${out.anwser}`",
        TYPED,
        "the code compares row.expcted with out.anwser, but the row has neither",
    ),
    (
        "return row.expcted?.trim() === out?.anwser?.trim()",
        TYPED,
        "the code compares row.expcted with out.anwser, but the row has neither",
    ),
    (
        "return isDeepStrictEqual(row.expcted, out.answer); function isDeepStrictEqual(a, b) { return a === b }",
        TYPED,
        "the code compares row.expcted with out.answer, but the row does not have row.expcted",
    ),
    (
        "return out.answer.includes(row.expcted)",
        TYPED,
        "the code compares out.answer with row.expcted, but the row does not have row.expcted",
    ),
    (
        "if (row.n === 1) { console.log(row) } return row.expcted === out.answer ? 1 : 0",
        TYPED,
        "the code compares row.expcted with out.answer, but the row does not have row.expcted",
    ),
    (
        "return row.expcted === out.answer",
        TYPED,
        "the code compares row.expcted with out.answer, but the row does not have row.expcted",
    ),
    (
        "return row.meta?.gold === out.answer",
        TYPED,
        "the code compares row.meta.gold with out.answer, but the row does not have row.meta.gold",
    ),
    (
        "return row.expected === out.answer",
        BARE,
        "the code compares row.expected with out.answer, but the row does not have out.answer",
    ),
    ("return row.expected === out.answer", TYPED, None),
    ("return row.expected === out.anwser", TYPED, None),
    ("return row.expcted === 'exact'", TYPED, None),
    ("return (row.expcted ?? '4') === out.answer", TYPED, None),
    ("if (row.expcted === undefined) return 0; return row.expcted === out.answer", TYPED, None),
    ("if (!row.expcted) return 0; return row.expcted === out.answer", TYPED, None),
    ("return 'expcted' in row && row.expcted === out.answer", TYPED, None),
    ("let wanted = row.expcted; wanted = '4'; return wanted === out.answer", TYPED, None),
    ("const at = (row) => row.expcted === out.answer; return at({ expcted: '4' })", TYPED, None),
    ("return row.expected.length === out.answer.length", TYPED, None),
    ("if (row.n === 1) return row.expected === out.answer; return row.expcted === out.anwser", TYPED, None),
    ("return row.n === 1 ? row.expected === out.answer : row.expcted === out.anwser", TYPED, None),
    ("return row.n === 1 || row.expcted === out.anwser", TYPED, None),
    ("for (const one of [1]) { return one }; return row.expcted === out.anwser", TYPED, None),
    ("row.expcted = '4'; return row.expcted === out.answer", TYPED, None),
    ("Object.assign(row, { expcted: '4' }); return row.expcted === out.answer", TYPED, None),
    ("add(row); return row.expcted === out.answer; function add(one) { one.expcted = '4' }", TYPED, None),
    ("return row.expected.length === out.length", BARE, None),
    # the row has another value with which the code compares the same one
    ("const exact = out === row.reference; const also = out === row.expected; return exact || also", BARE, None),
    ("return [row.expcted === out, row.expected === out].some(Boolean)", BARE, None),
    ("return out === row.expcted || out === row.expected", BARE, None),
    (
        "return out === row.expcted && out !== row.n",
        BARE,
        "the code compares out with row.expcted, but the row does not",
    ),
    (
        "const exact = out === row.expcted; const also = out === row.want; return exact || also",
        BARE,
        "the code compares out with row.expcted, but the row does not",
    ),
    # the code decides by something else
    ("if (out === row.forbidden) return 0; return out.length < 5", BARE, None),
    ("return out === row.forbidden ? 0 : out.length < 5", BARE, None),
    (
        "if (out === row.expcted) return 1; return 0",
        BARE,
        "the code compares out with row.expcted, but the row does not",
    ),
    (
        "if (out !== row.expcted) return 0; return out.length < 5",
        BARE,
        "the code compares out with row.expcted, but the row does not",
    ),
    ("if (out.anwser === row.forbidden) return 0; return 1", TYPED, "the code compares out.anwser with row.forbidden"),
    # a function may change the row
    ("prepare(row); return row.expcted === out.answer", TYPED, None),
    ("helper.prepare(row); return row.expcted === out.answer", TYPED, None),
    ("helper?.prepare(...[1], row); return row.expcted === out.answer", TYPED, None),
    (
        "helper.prepare({ row: {} }); return row.expcted === out.answer",
        TYPED,
        "the code compares row.expcted with out.answer, but the row does not have row.expcted",
    ),
]
PREPARE = """
function prepare(row) { row.expcted = "4" }
const helper = { prepare };
"""


@pytest.mark.sampled(2)
@ON_BUBBLEWRAP
@pytest.mark.parametrize("language", [JAVASCRIPT, TYPESCRIPT])
async def test_a_comparison_with_a_value_that_the_row_lacks_is_doubtful(service: Service, language: Language) -> None:
    head = FUNCTION if language is JAVASCRIPT else FUNCTION.replace("row, out", "row: any, out: any")
    prepare = PREPARE if language is JAVASCRIPT else PREPARE.replace("(row)", "(row: any)")
    codes = [head.format(body) + prepare for body, _, _ in COMPARED]
    rows = [row for _, row, _ in COMPARED]
    results = await asyncio.gather(
        *(service.evaluate(Evaluator(code, language), row) for code, row in zip(codes, rows, strict=True))
    )
    told = [[note.message for note in one.warnings if note.code == "missing_column"] for one in results]
    assert [one.error for one in results if one.error] == []
    wrong = [
        (body, found)
        for (body, _, expected), found in zip(COMPARED, told, strict=True)
        if (found == [] if expected is None else len(found) == 1 and found[0].startswith(expected)) is False
    ]
    assert wrong == []


COMPARED_IN_PYTHON: list[tuple[str, Row, str | None]] = [  # body of the function, a row, and the end of the warning
    ("return row.get('expcted') == out.get('anwser')", TYPED, "has neither, so that None is equal to None"),
    ("want, said = 1, out.get('anwser'); return row.get('expcted') == said", TYPED, "has neither"),
    ("return str(row.get('expcted')).strip() != f\"{out.get('anwser')}\"", TYPED, "has neither"),
    ("return row.get('meta', {}).get('gold') == (out.get('meta') or {}).get('said')", TYPED, "has neither"),
    ("return 1.0 if row.get('expcted') == out.get('anwser') else 0.0", TYPED, "has neither"),
    ("print(row); return is_same(row.get('expcted'), out.get('anwser'))", TYPED, "has neither"),
    ("return row.get('expcted') == out['answer']", TYPED, "does not have row.get('expcted'), which is None"),
    ("return row.get('expcted', None) == out", BARE, "does not have row.get('expcted')"),
    ("return row.get('expcted') in out['tags']", Row({"n": 1}, {"tags": ["a"]}), "does not have row.get('expcted')"),
    ("return row.get('expected') == out.get('answer')", TYPED, None),
    ("return row.get('expected') == out.get('anwser')", TYPED, None),
    ("return row.get('expcted') == 'exact'", TYPED, None),
    ("return (row.get('expcted') or '4') == out.get('answer')", TYPED, None),
    ("return row.get('expcted', '4') == out.get('answer')", TYPED, None),
    ("wanted = row.get('expcted'); return bool(wanted) and wanted == out.get('anwser')", TYPED, None),
    ("wanted = row.get('expcted'); wanted = '4'; return wanted == out.get('answer')", TYPED, None),
    ("if row.get('expcted') is None: return 0; return row.get('expcted') == out.get('anwser')", TYPED, None),
    ("if 'expcted' not in row: return 0; return row.get('expcted') == out.get('anwser')", TYPED, None),
    ("if row['n'] == 1: return 1; return row.get('expcted') == out.get('anwser')", TYPED, None),
    ("return row['n'] == 1 or row.get('expcted') == out.get('anwser')", TYPED, None),
    ("for one in [1]: return one; return row.get('expcted') == out.get('anwser')", TYPED, None),
    ("row['expcted'] = '4'; return row.get('expcted') == out.get('answer')", TYPED, None),
    ("row.update(expcted='4'); return row.get('expcted') == out.get('answer')", TYPED, None),
    # the row has another value with which the code compares the same one
    ("exact = out == row.get('reference'); also = out == row.get('expected'); return exact or also", BARE, None),
    ("return any([out == row.get('expcted'), out == row.get('expected')])", BARE, None),
    ("return max(is_same(out, row.get('expcted')), is_same(out, row['expected']))", BARE, None),
    ("return out == row.get('expcted') or out == row.get('expected')", BARE, None),
    ("return out == row.get('expcted') and out != row.get('n')", BARE, "does not have row.get('expcted')"),
    ("return any([out == row.get('expcted'), out == row.get('want')])", BARE, "does not have row.get('expcted')"),
    # the code decides by something else
    ("if out == row.get('forbidden'): return 0; return len(out) < 5", BARE, None),
    ("if not out or out == row.get('forbidden'): return 0; return len(out) < 5", BARE, None),
    ("return 0 if out == row.get('forbidden') else len(out) < 5", BARE, None),
    ("if out == row.get('expcted'): return 1; return 0", BARE, "does not have row.get('expcted')"),
    ("if out == row.get('expcted'): return 1; return {'score': 0, 'comment': f'not {out}'}", BARE, "does not have"),
    ("if out != row.get('expcted'): return 0; return len(out) < 5", BARE, "does not have row.get('expcted')"),
    ("if out.get('anwser') == row.get('forbidden'): return 0; return 1", TYPED, "has neither"),
    ("key = row.get('field'); value = out[key] if key in out else out; return value == {'answer': '4'}", TYPED, None),
    # a function may change the row
    ("prepare(row); return row.get('expcted') == out.get('answer')", TYPED, None),
    ("helper.prepare(row); return row.get('expcted') == out.get('answer')", TYPED, None),
    ("helper.prepare(row=row); return row.get('expcted') == out.get('answer')", TYPED, None),
    ("await fill(row); return row.get('expcted') == out.get('answer')", TYPED, None),
    ("helper.prepare({}); return row.get('expcted') == out.get('answer')", TYPED, "does not have row.get('expcted')"),
]
HELPERS = """
import types
def is_same(a, b): return a == b
def prepare(row): row["expcted"] = "4"
async def fill(row): prepare(row)
helper = types.SimpleNamespace(prepare=prepare)
"""


@ON_BUBBLEWRAP
async def test_a_comparison_of_python_with_a_value_that_the_row_lacks_is_doubtful(service: Service) -> None:
    bodies = ["\n    ".join(body.split("; ")) for body, _, _ in COMPARED_IN_PYTHON]
    codes = [
        f"{'async ' if 'await' in body else ''}def evaluate(row, out, trace):\n    {body}\n{HELPERS}" for body in bodies
    ]
    results = await asyncio.gather(
        *(service.evaluate(Evaluator(code), row) for code, (_, row, _) in zip(codes, COMPARED_IN_PYTHON, strict=True))
    )
    told = [[note.message for note in one.warnings if note.code == "missing_column"] for one in results]
    assert [one.error for one in results if one.error] == []
    wrong = [
        (body, found)
        for (body, _, expected), found in zip(COMPARED_IN_PYTHON, told, strict=True)
        if (found == [] if expected is None else len(found) == 1 and expected in found[0]) is False
    ]
    assert wrong == []


ONE_OF_TWO = """
def exact(inputs, outputs, trace): return inputs.get("expcted") == outputs.get("anwser")
def short(inputs, outputs, trace): return len(outputs) < 5
"""
OF_PLATFORM = """
def perform_eval(run, example):
    return {"score": run.outputs.get("anwser") == example.outputs.get("expcted")}
"""


@pytest.mark.sampled(3)
@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("evaluator", "row", "score"),
    [
        (Evaluator(ONE_OF_TWO, contract=Contract.EVALUATE, settings=EvaluatorSettings(entry="*")), TYPED, None),
        (Evaluator("def main(case, answer): return {'score': case.get('a') == answer.get('b')}"),
         Row(variables={"case": {}, "answer": {}}), 1),
        (Evaluator(OF_PLATFORM), TYPED, 1),
    ],
)  # fmt: skip
async def test_python_compares_missing_values_by_any_contract(
    service: Service, evaluator: Evaluator, row: Row, score: float | None
) -> None:
    result = await service.evaluate(evaluator, row)
    assert (result.error, result.score) == (None, score)
    assert [note.code for note in result.warnings if "has neither" in note.message] == ["missing_column"]


@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("language", "code"),
    [
        (JAVASCRIPT, FUNCTION.format("return row.expcted === out.anwser")),
        (PYTHON, "def evaluate(row, out, trace):\n    return row.get('expcted') == out.get('anwser')"),
    ],
)
async def test_a_comparison_of_two_missing_values_makes_the_score_doubtful(
    service: Service, language: Language, code: str
) -> None:
    results = [await service.evaluate(Evaluator(code, language), TYPED) for _ in range(2)]
    assert [one.score for one in results] == [1, 1]
    assert str(RowWarnings.of(results).doubt()).startswith("2 of 2 scores are doubtful: the code compares row.")


@ON_BUBBLEWRAP
async def test_a_missing_column_has_one_warning(service: Service) -> None:
    evaluator = Evaluator(FUNCTION.format("return row.expected === out"), JAVASCRIPT)
    result = await service.evaluate(evaluator, ROW)
    [note] = result.warnings
    assert note.message.startswith("the code reads `expected`, but the row has `correct_answer` instead")


@ON_BUBBLEWRAP
async def test_a_missing_column_in_a_subscript_is_told_as_a_key_error(service: Service) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['expected']\n"
    result = await service.evaluate(Evaluator(code), ROW)
    assert result.error is not None
    assert "KeyError" in str(result.error.type)
    [note] = (one for one in result.warnings if one.code == "missing_column")
    assert note.message.endswith("so `.get` returns None or its default, and `[…]` raises KeyError")
    assert note.remedy == "map the column: expected=correct_answer; or let the code read `correct_answer`"
    told = "this row's inputs have: correct_answer; read one of these, or use .get('expected') if rows may lack it"
    assert result.error.hint == told
