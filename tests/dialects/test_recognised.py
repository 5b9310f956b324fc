"""If two dialects recognise code equally well, the host refuses the code and names both, unless a contract is declared."""

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.outcome import ErrorCode
from tests.conftest import ON_BUBBLEWRAP

BOTH = {
    Language.PYTHON: "def perform_eval(run):\n    return {'a': 1}\n\ndef get_assert(output, context):\n    return 0.5\n",
    Language.JAVASCRIPT: "function performEval(run) { return { a: 1 } }\nfunction get_assert(output) { return 0.5 }\n",
}


@ON_BUBBLEWRAP
@pytest.mark.parametrize("language", BOTH)
async def test_two_equal_signs_are_ambiguous_and_a_declared_contract_decides(
    service: Service, language: Language
) -> None:
    report = await service.check(Evaluator(BOTH[language], language))
    [problem] = report.problems
    assert problem.code is ErrorCode.ENTRY_AMBIGUOUS
    assert "langsmith" in problem.message
    assert "promptfoo" in problem.message
    assert problem.hint is not None
    assert "set `contract` to langsmith or promptfoo" in problem.hint
    for contract, score in ((Contract("langsmith"), 1), (Contract("promptfoo"), 0.5)):
        declared = await service.evaluate(Evaluator(BOTH[language], language, contract), Row(outputs="x"))
        assert (declared.score, declared.evaluator.contract_source) == (score, "declared")


@ON_BUBBLEWRAP
@pytest.mark.parametrize(
    ("language", "code"),
    [
        (
            Language.JAVASCRIPT,
            "function same(run, example) {\n  return run === example ? 1 : 0;\n}\nfunction evaluate(inputs, outputs, trace) {\n  return same(outputs, 'Paris');\n}\n",
        ),
        (
            Language.PYTHON,
            "def same(run, example):\n    return run == example\n\ndef evaluate(inputs, outputs, trace):\n    return same(outputs, 'Paris')\n",
        ),
    ],
)
async def test_a_helper_that_looks_like_an_evaluator_of_a_platform_is_not_an_entry(
    service: Service, language: Language, code: str
) -> None:
    result = await service.evaluate(Evaluator(code, language), Row({}, "Paris"))
    assert (result.evaluator.contract, result.score) == (Contract.EVALUATE, 1), result.error
