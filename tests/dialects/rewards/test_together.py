"""One call returns the rewards of many rows: each reward belongs to the right row, and is the same as if the row had
been scored alone.
"""

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.summaries import summarise
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationResult
from tests.conftest import ON_BUBBLEWRAP

pytestmark = ON_BUBBLEWRAP


async def scored(service: Service, code: str, *texts: str) -> tuple[list[EvaluationResult], EvaluationResult]:
    """Score a row for each of these outputs; return the results of the rows, and the result over all rows together."""
    evaluator, rows = Evaluator(code), [Row({"question": "q"}, text) for text in texts]
    results = await service.evaluate_batch(evaluator, rows)
    together = await service.evaluate_together(evaluator, rows, results)
    assert together is not None
    return results, together


async def test_rewards_of_all_rows_name_their_rows(service: Service) -> None:
    code = (
        "def reward(completions, **kwargs):\n    return [1 / len(one) if one != '-' else None for one in completions]\n"
    )
    for texts, rewards, rows in ((("", "a", "-", "bb"), [1.0, 0.5], [1, 3]), (("-", "a"), [1.0], [1])):
        _, together = await scored(service, code, *texts)
        assert together.native == ({"name": "reward", "rewards": rewards, "rows": rows},)
        assert together.warnings == ()


async def test_a_reward_within_a_group_is_reported_beside_the_rewards_of_rows_alone(service: Service) -> None:
    code = "def reward(completions, **kwargs):\n    least = min(map(len, completions))\n    return [float(len(one) == least) for one in completions]\n"
    results, together = await scored(service, code, "a", "bb", "ccc")
    assert [one.score for one in results] == [1, 1, 1]
    [note] = together.warnings
    assert note.code == "rewards_of_group"
    assert "gave row 1 the reward 1.0 when it was scored alone, and 0.0 when all rows were" in note.message


async def test_a_function_that_gives_one_reward_for_all_rows_is_a_doubt(service: Service) -> None:
    results, together = await scored(service, "def reward(completions, **kwargs):\n    return [0.5]\n", "a", "bb")
    assert together.error is not None
    assert together.error.code is ErrorCode.INVALID_RESULT
    doubt = summarise(results, seconds=1, together=together).doubt
    assert doubt is not None
    assert "1 rewards, but 2 were expected" in doubt
