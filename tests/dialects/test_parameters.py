"""Parameters whose names say something else than what they are given: a warning in checks and results, or a refusal."""

import pytest

from evaluator_host.model.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Row
from evaluator_host.model.outcome import ErrorCode
from evaluator_host.service import Service

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
BUBBLEWRAP = pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
ROW = Row({"correct_answer": "4"}, "4")
HEADS = {
    PYTHON: "import json\n\ndef evaluate({}):\n    return 1.0\n",
    JAVASCRIPT: "// compares\n\nfunction evaluate({}) {{ return 1 }}\n",
    TYPESCRIPT: "// compares\n\nexport const evaluate = ({}: any) => 1;\n",
}
WARNED = {
    "input, output, expected": "`expected` is given trace",
    "output, input, trace": "`output` is given inputs and `input` is given outputs",
    "inputs, outputs, ground_truth": "`ground_truth` is given trace",
    "run, example, trace": "`run` is given inputs and `example` is given outputs",
    "question, answer, context": "`context` is given trace",
    "input, output, expected, metadata": "`input` is given app_params and `output` is given inputs",
}
PLAIN = ("inputs, outputs, trace", "question, answer, trace", "a, b, c", "inputs, outputs, _expected", "row, output, t")
PLAIN_V1 = ("app_params, inputs, output, correct_answer", "config, inputs, output, expected")


async def warnings_of(service: Service, code: str, language: Language) -> list[str]:
    """The messages of a check and of a result, which are the same."""
    evaluator = Evaluator(code, language)
    report, result = await service.check(evaluator), await service.evaluate(evaluator, ROW)
    found = [
        [one.message for one in notes if one.code == "suspicious_parameters"]
        for notes in (report.notes, result.warnings)
    ]
    assert found[0] == found[1]
    assert result.score == 1
    return found[0]


@BUBBLEWRAP
@pytest.mark.parametrize("language", HEADS)
async def test_a_name_that_says_something_else_is_warned_about(service: Service, language: Language) -> None:
    for names, words in WARNED.items():
        code = HEADS[language].format(names if language is not TYPESCRIPT else names.replace(", ", ": any, "))
        [message] = await warnings_of(service, code, language)
        assert message.startswith(f"line 3: {words}"), names


@BUBBLEWRAP
async def test_ordinary_names_are_not(service: Service) -> None:
    for names in (*PLAIN, *PLAIN_V1):
        assert await warnings_of(service, HEADS[PYTHON].format(names), PYTHON) == [], names


@BUBBLEWRAP
async def test_the_rewrite_takes_the_expected_answer_from_the_inputs(service: Service) -> None:
    settings = EvaluatorSettings(correct_answer_key="gold")
    code = HEADS[PYTHON].format("input, output, expected")
    report = await service.check(Evaluator(code, settings=settings))
    [message] = [note.message for note in report.notes]
    assert "write `def evaluate(input, output, trace)` and `expected = input['gold']` in it" in message


@BUBBLEWRAP
@pytest.mark.parametrize("parameters", ["inputs", "{ inputs, outputs }", "[a, b]", "...all"])
async def test_javascript_refuses_one_parameter_as_python_does(service: Service, parameters: str) -> None:
    code = f"function evaluate({parameters}) {{ return 1 }}"
    result = await service.evaluate(Evaluator(code, JAVASCRIPT), ROW)
    assert result.error is not None
    assert result.error.code in (ErrorCode.BINDING_ERROR, ErrorCode.ENTRY_AMBIGUOUS)
    declared = await service.evaluate(Evaluator(code, JAVASCRIPT, Contract.EVALUATE), ROW)
    assert parameters == "[a, b]" or declared.score == 1
