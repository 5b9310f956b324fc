"""The host refuses code, or warns about it, if a parameter does not get the value that its name suggests."""

import asyncio

import pytest

from evaluator_host.engine.contracts.parameters import rewritten, row_notes, suspicious_parameters
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import ErrorCode, FunctionFacts, Loaded, ParameterFacts
from evaluator_host.types.warnings import RowWarnings

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
BUBBLEWRAP = pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
ROW = Row({"correct_answer": "4"}, "4")
HEADS = {
    PYTHON: "import json\n\ndef evaluate({}):\n    return 1.0\n",
    JAVASCRIPT: "// compares\n\nfunction evaluate({}) {{ return 1 }}\n",
    TYPESCRIPT: "// compares\n\nexport const evaluate = ({}: any) => 1;\n",
}
WARNED = {
    "input, output, expected": "`expected` gets `trace`",
    "output, input, trace": "`output` gets `inputs` and `input` gets `outputs`",
    "inputs, outputs, ground_truth": "`ground_truth` gets `trace`",
    "run, example, trace": "`run` gets `inputs` and `example` gets `outputs`",
    "question, answer, context": "`context` gets `trace`",
    "input, output, expected, metadata": "`input` gets `app_params` and `output` gets `inputs`",
}
PLAIN = ("inputs, outputs, trace", "question, answer, trace", "a, b, c", "inputs, outputs, _expected", "row, output, t")
PLAIN_V1 = ("app_params, inputs, output, correct_answer", "config, inputs, output, expected")


def head(names: str, language: Language) -> str:
    """Return code that has, on line 3, a function with these parameters."""
    return HEADS[language].format(names if language is not TYPESCRIPT else names.replace(", ", ": any, "))


def warnings_of(names: str, language: Language) -> list[str]:
    """Return the host's warnings about parameters with these names, as if a sandbox had reported the names."""
    contract = Contract.EVALUATE_V1 if names.count(",") == 3 else Contract.EVALUATE
    facts = FunctionFacts("evaluate", 3, parameters=tuple(map(ParameterFacts, names.split(", "))))
    loaded = Loaded(contract, "declared", "", "evaluate", tuple(names.split(", ")), facts=(facts,))
    return [note.message for note in suspicious_parameters(Evaluator(head(names, language), language), loaded)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("language", HEADS)
@pytest.mark.parametrize("names", WARNED)
def test_a_name_that_says_something_else_is_warned_about(names: str, language: Language) -> None:
    [message] = warnings_of(names, language)
    assert message.startswith(f"line 3: {WARNED[names]}")


@pytest.mark.parametrize("names", [*PLAIN, *PLAIN_V1])
def test_ordinary_names_are_not_warned_about(names: str) -> None:
    assert warnings_of(names, PYTHON) == []


@pytest.mark.sampled(3)
@BUBBLEWRAP
@pytest.mark.parametrize("language", HEADS)
async def test_checks_and_results_have_the_warning(service: Service, language: Language) -> None:
    names = "input, output, expected, metadata" if language is PYTHON else "input, output, expected"
    contract = Contract.EVALUATE_V1 if language is PYTHON else Contract.EVALUATE
    evaluator = Evaluator(head(names, language), language, contract)
    report, result = await service.check(evaluator), await service.evaluate(evaluator, ROW)
    for notes in (report.notes, result.warnings):
        assert [one.message for one in notes if one.code == "suspicious_parameters"] == warnings_of(names, language)
    assert result.score == 1


@BUBBLEWRAP
async def test_the_rewrite_takes_the_expected_answer_from_the_inputs(service: Service) -> None:
    settings = EvaluatorSettings(correct_answer_key="gold")
    code = HEADS[PYTHON].format("input, output, expected")
    report = await service.check(Evaluator(code, contract=Contract.EVALUATE, settings=settings))
    [message] = [note.text for note in report.notes]
    assert "write `def evaluate(input, output, trace)` and `expected = input['gold']` in it" in message


REWRITES: list[tuple[Language, str, str | None]] = [
    (
        PYTHON,
        "def evaluate(input: str, output, expected: str = ''):\n    # exact\n\n    return output == expected\n",
        "def evaluate(input: str, output, trace: str = ''):\n    expected = input['correct_answer']\n    # exact\n\n    return output == expected\n",
    ),
    (
        PYTHON,
        "async def evaluate(output, input, trace) -> float: return output == input['a']",
        "async def evaluate(inputs, outputs, trace) -> float: output = outputs; input = inputs; return output == input['a']",
    ),
    (
        PYTHON,
        "def evaluate(outputs, inputs, trace):  # swapped\n  return outputs",
        "def evaluate(inputs, outputs, trace):  # swapped\n  return outputs",
    ),
    (PYTHON, "def evaluate(run, example, trace):\n    return run['a']", None),
    (
        PYTHON,
        "def evaluate(inputs, outputs, metadata):\n    return outputs",
        "def evaluate(inputs, outputs, trace):\n    return outputs",
    ),
    (
        JAVASCRIPT,
        "function evaluate(input, output, expected) { return output === expected }",
        "function evaluate(input, output, trace) { const expected = input['correct_answer']; return output === expected }",
    ),
    (
        TYPESCRIPT,
        "export const evaluate = (input: any, output: any, expected: any): boolean => {\n  return output === expected;\n};",
        "export const evaluate = (input: any, output: any, trace: any): boolean => {\n  const expected = input['correct_answer'];\n  return output === expected;\n};",
    ),
    (JAVASCRIPT, "const evaluate = (input, output, expected) => output === expected", None),
    (PYTHON, "def evaluate(inputs, outputs, trace):\n    return 1", None),
]  # fmt: skip


def loaded_of(contract: Contract, code: str) -> Loaded:
    """Return what a sandbox would report about code with a single function, on line 1."""
    given, _, body = code.partition("(")[2].partition(")")
    names = tuple(one.split()[0] for one in given.replace(":", " ").split(","))
    parameters = tuple(ParameterFacts(name, read=name in body) for name in names)
    return Loaded(
        contract, "declared", "", "evaluate", names, facts=(FunctionFacts("evaluate", 1, parameters=parameters),)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("language", "code", "wanted"), REWRITES)
def test_the_code_that_was_meant_is_written(language: Language, code: str, wanted: str | None) -> None:
    assert rewritten(Evaluator(code, language), loaded_of(Contract.EVALUATE, code)) == wanted


def test_the_order_of_other_platforms_is_written_as_positions() -> None:
    code = "def evaluate(input, output, expected, metadata):\n    return output == expected\n"
    assert rewritten(Evaluator(code), loaded_of(Contract.EVALUATE_V1, code)) == (
        "def evaluate(app_params, inputs, output, correct_answer):\n"
        "    expected = correct_answer\n    return output == expected\n"
    )


@pytest.mark.sampled(3)
@BUBBLEWRAP
@pytest.mark.parametrize(
    "before",
    [
        "",
        "def helper(evaluate, b=()):\n    return evaluate\n\n",
        'TEXT = """\ndef evaluate(input, output, expected):\n    return 0\n"""\n',
    ],
    ids=["alone", "a parameter of that name", "a text with such a function"],
)
async def test_the_code_that_was_meant_scores(service: Service, before: str) -> None:
    code = f"{before}def evaluate(input, output, expected):  # not `metadata`\n    return output == expected\n"
    report = await service.check(Evaluator(code, contract=Contract.EVALUATE))
    assert report.rewritten is not None
    assert (await service.check(Evaluator(report.rewritten))).notes == ()
    assert (await service.evaluate(Evaluator(report.rewritten), ROW)).score == 1


@pytest.mark.sampled(4)
@BUBBLEWRAP
@pytest.mark.parametrize("parameters", ["inputs", "{ inputs, outcome }", "[a, b]", "...all"])
async def test_javascript_refuses_one_parameter_as_python_does(service: Service, parameters: str) -> None:
    code = f"function evaluate({parameters}) {{ return 1 }}"
    result = await service.evaluate(Evaluator(code, JAVASCRIPT), ROW)
    assert result.error is not None
    assert result.error.code in (ErrorCode.BINDING_ERROR, ErrorCode.ENTRY_AMBIGUOUS)
    declared = await service.evaluate(Evaluator(code, JAVASCRIPT, Contract.EVALUATE), ROW)
    assert parameters == "[a, b]" or declared.score == 1


# evaluators that test whether the output is the expected answer; each is called with `ROW`, and with the output "5"
MEANT = {
    PYTHON: """
def evaluate(output, expected):
def evaluate(prediction, reference):
def evaluate(y_true, output):
def evaluate(*, output, expected):
def evaluate(**output):
def evaluate(*output):
def evaluate(output, expected=None, metadata=None):
def evaluate(question, output, gt):
def evaluate(pred, output, src):
def evaluate(output, reference, source):
def evaluate(output, gold_standard, rubric):
def evaluate(generated_text, output, config):
def evaluate(item, output, expected_output):
def evaluate(self, output, expected):
async def evaluate(input, output, expected):
def evaluate(input: str, output: str, expected: str, /) -> bool:
def evaluate(input, output, expected, metadata):
def evaluate(params, inputs, output, expected, more):
def evaluate(inputs, output, expectations):
def evaluate(data, output, solution):
def evaluate(task, output, expected_result):
def evaluate(test_case, output, wanted):
def evaluate(example, output, trace=None, expected=None):
def evaluate(inputs, output, trace=None, reference=''):
def evaluate(event, output, callback):
def score(output, expected):
def exact_match(output, expected):
def metric(gold, output, trace=None):
def main(output, expected=None):
def main(output, ground_truth='x'):
def get_assert(output, expected):
def grade(item, output):
""",
    JAVASCRIPT: """
function evaluate(input, output, expected) {
function evaluate(output, expected) {
export default function (output, expected) {
export default async function (input, output, expected) {
export const evaluate = ({ input, output, expected }) => {
export default ({ output, expected }) => {
const evaluate = (pred, output, src) => {
const evaluate = (output, actual, opts) => {
const evaluate = (output, expectedOutput, options = {}) => {
function evaluate(input, output, expectedOutput = null) {
function evaluate(inputs, output, groundTruth) {
function evaluate(...output) {
function evaluate() { const output = arguments[1];
function evaluate(input, { output }, trace) {
function main({ output, expected }) {
function exactMatch(output, expected) {
export class Exact { evaluate(input, output, expected) {
""",
}
WHOLE = {
    PYTHON: (
        "def evaluate(a, b, normalize=True):\n    return a == b",
        "evaluate = lambda x, y, z: y in z",
        "class E:\n    def __call__(self, input, output, expected):\n        return output == expected\nevaluate = E()",
        "class E:\n    def evaluate(self, output, expected):\n        return output == expected",
        "from functools import partial\ndef e(s, output, expected, m):\n    return output == expected\nevaluate = partial(e, 1)",
        (
            "def log(f):\n    def w(*a, **k):\n        return f(*a, **k)\n    return w\n@log\n"
            "def evaluate(input, output, expected):\n    return output == expected"
        ),
        "def evaluate(inputs, outputs, trace):\n    return outputs == inputs.get('expected')",
        "def evaluate(row, said, trace):\n    return said == row.get('ground_truth')",
    ),
    JAVASCRIPT: (
        "const evaluate = (a, b, c) => a === b",
        "const evaluate = ((input, output, expected) => output === expected).bind(null)",
        "function evaluate(inputs, outputs, trace) { return outputs === inputs.expected }",
        "function evaluate(inputs, outputs, trace) { return outputs === inputs['groundTruth'] ? 1 : 0 }",
        "function main(vars) { return { score: vars.output === vars.expected ? 1 : 0 } }",
    ),
}


def meant() -> list[Evaluator]:
    """Return the functions in `WHOLE`, and functions with the heads in `MEANT` and bodies that score 0. Only a few are
    in TypeScript, because types do not change how the host reads names.
    """
    found = [Evaluator(code, language) for language, codes in WHOLE.items() for code in codes]
    found += [Evaluator(code, TYPESCRIPT) for code in WHOLE[JAVASCRIPT][:1]]
    for head in MEANT[PYTHON].strip().splitlines():
        found.append(Evaluator(f"{head}\n    return {{'score': 0.0}}", PYTHON))
    for head in MEANT[JAVASCRIPT].strip().splitlines():
        code = f"{head} return {{ score: 0 }} }}" + (" }" if "class" in head else "")
        found.append(Evaluator(code, JAVASCRIPT))
        if any(part in head for part in ("default ({", "= {})", "class")):
            found.append(Evaluator(code, TYPESCRIPT))
    return found


@BUBBLEWRAP
async def test_no_function_is_silently_wrong(service: Service) -> None:
    """No function is silently wrong.

    It gets the values that its parameters' names suggest, or the host refuses it with a reason, or a warning says why
    it scores 0 instead of 1.
    """
    evaluators = meant()
    assert len(evaluators) > 60
    results = await asyncio.gather(*(service.evaluate(one, ROW) for one in evaluators))
    codes = {"suspicious_parameters", "missing_column"}
    silent = [
        one.code
        for one, result in zip(evaluators, results, strict=True)
        if result.error is None
        and result.evaluator.contract is not Contract.FUNCTION
        and not codes & {note.code for note in result.warnings}
    ]
    assert silent == []


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
@BUBBLEWRAP
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


@BUBBLEWRAP
async def test_a_score_without_outputs_comes_with_a_warning(service: Service) -> None:
    code = "def evaluate(app_params, inputs, output, correct_answer):\n    return float(output == correct_answer)\n"
    result = await service.evaluate(Evaluator(code), Row({"correct_answer": "Paris"}))
    assert (result.score, [note.code for note in result.warnings]) == (0, ["missing_outputs"])


@pytest.mark.sampled(2)
@BUBBLEWRAP
@pytest.mark.parametrize(
    ("language", "code", "told"),
    [
        (PYTHON, "def evaluate(inputs, outputs, trace):\n    return outputs == inputs", True),
        (PYTHON, "def evaluate(inputs, outputs, trace):\n    return (lambda outputs: outputs == inputs)(1)", False),
        (JAVASCRIPT, "function evaluate(inputs, outputs, trace) { return outputs === inputs }", True),
        (JAVASCRIPT, "const evaluate = (inputs, outputs, trace) => [1].some((outputs) => outputs === inputs)", False),
    ],
)
async def test_only_parameters_of_one_function_are_compared_as_wholes(
    service: Service, language: Language, code: str, told: bool
) -> None:
    report = await service.check(Evaluator(code, language, Contract.EVALUATE))
    assert any("`inputs` is compared with `outputs`" in note.message for note in report.notes) is told


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
@BUBBLEWRAP
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


@BUBBLEWRAP
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
@BUBBLEWRAP
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


@BUBBLEWRAP
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


@BUBBLEWRAP
async def test_a_missing_column_has_one_warning(service: Service) -> None:
    evaluator = Evaluator(FUNCTION.format("return row.expected === out"), JAVASCRIPT)
    result = await service.evaluate(evaluator, ROW)
    [note] = result.warnings
    assert note.message.startswith("the code reads `expected`, but the row has `correct_answer` instead")


@BUBBLEWRAP
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
