"""Code that lost its indentation is sent to a service: the error contains a fix, and `settings.repair` runs the fixed
code.
"""

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.prepared import evaluator_digest
from evaluator_host.types.evaluator import Evaluator, EvaluatorSettings, Policy, Row
from evaluator_host.types.outcome import ErrorCode
from tests.conftest import ON_BUBBLEWRAP

pytestmark = ON_BUBBLEWRAP

LOST = "def evaluate(inputs, outputs, trace):\nimport not_there_at_all as gone\nif outputs:\nreturn 1\nreturn 0\n"
SIMPLE = LOST.replace("import not_there_at_all as gone\n", "")
REPAIRED = EvaluatorSettings(repair=True)


async def test_the_fix_is_in_a_check_a_call_and_the_first_row_of_a_batch(service: Service) -> None:
    report = await service.check(Evaluator(SIMPLE))
    result = await service.evaluate(Evaluator(SIMPLE), Row(outputs=True))
    for error in (report.problems[0], result.error):
        assert error is not None
        assert error.code is ErrorCode.SYNTAX_ERROR
        assert error.fix is not None
        assert error.fix.unique
        assert (await service.evaluate(Evaluator(error.fix.code or ""), Row(outputs=True))).score == 1
    batch = await service.evaluate_batch(Evaluator(SIMPLE), [Row(), Row(), Row()])
    errors = [one.error for one in batch]
    assert [error is not None and error.fix is not None for error in errors] == [True, False, False]


async def test_a_repaired_evaluator_scores_and_says_so(service: Service) -> None:
    evaluator = Evaluator(SIMPLE, settings=REPAIRED)
    for policy in Policy:
        result = await service.evaluate(Evaluator(SIMPLE, settings=REPAIRED, policy=policy), Row(outputs=True))
        assert (result.score, [note.code for note in result.warnings]) == (1, ["repaired"]), result.error
    assert [one.score for one in await service.evaluate_batch(evaluator, [Row(), Row(outputs=1)])] == [0, 1]
    report = await service.check(Evaluator(LOST, settings=REPAIRED))
    assert [one.module for one in report.missing_imports] == ["not_there_at_all"]
    assert evaluator_digest(evaluator) != evaluator_digest(Evaluator(SIMPLE))


async def test_of_two_structures_none_is_run(service: Service) -> None:
    code = "def evaluate(inputs, outputs, trace):\nn = 0\nfor x in outputs:\nn += 1\nn += 2\nreturn n\n"
    result = await service.evaluate(Evaluator(code, settings=REPAIRED), Row(outputs=[1]))
    assert result.error is not None
    assert result.error.fix is not None
    assert (result.error.fix.unique, len(result.error.fix.candidates)) == (False, 2)
