"""The host refuses code, or warns about it, if a parameter does not get the value that its name suggests."""

import asyncio

import pytest

from evaluator_host.engine.contracts.parameters import rewritten, suspicious_parameters
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import ErrorCode, FunctionFacts, Loaded, ParameterFacts
from tests.conftest import ON_BUBBLEWRAP

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
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
@ON_BUBBLEWRAP
@pytest.mark.parametrize("language", HEADS)
async def test_checks_and_results_have_the_warning(service: Service, language: Language) -> None:
    names = "input, output, expected, metadata" if language is PYTHON else "input, output, expected"
    contract = Contract.EVALUATE_V1 if language is PYTHON else Contract.EVALUATE
    evaluator = Evaluator(head(names, language), language, contract)
    report, result = await service.check(evaluator), await service.evaluate(evaluator, ROW)
    for notes in (report.notes, result.warnings):
        assert [one.message for one in notes if one.code == "suspicious_parameters"] == warnings_of(names, language)
    assert result.score == 1


@ON_BUBBLEWRAP
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
@ON_BUBBLEWRAP
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
@ON_BUBBLEWRAP
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


@ON_BUBBLEWRAP
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


@pytest.mark.sampled(2)
@ON_BUBBLEWRAP
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
