"""Rows, jobs and workspaces may make only as many requests to models as their budgets allow; a row's use is reported."""

import asyncio
import json
from pathlib import Path

import pytest

from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.model_grants import Meter, ModelTerms
from evaluator_host.platform.models.service import ModelService
from evaluator_host.platform.terminal.summary import usage_text
from evaluator_host.types.evaluator import Evaluator, ModelBudget, Row
from evaluator_host.types.models import RegisteredModel
from evaluator_host.types.outcome import ErrorCode, Status
from tests.model_server import ModelServer, Reply
from tests.models.conftest import Granting, granting_on
from tests.models.judges import ASK, ONE

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

MANY = (
    ASK
    + """
def evaluate(inputs, outputs, trace):
    return sum(ask("judge", f"{outputs} {n}")[0] == 200 for n in range(5)) / 5
"""
)


@pytest.mark.long
async def test_tokens_are_marked_as_estimated_if_the_provider_reports_none(granted: Granting) -> None:
    models = ModelService(granted.service.settings, granted.store)
    message = {"choices": [{"message": {"role": "assistant", "content": "yes"}}]}
    with ModelServer() as provider:
        provider.routes["/v1/chat/completions"] = lambda _: Reply(200, json.dumps(message).encode())
        await models.directory.add("default", RegisteredModel("silent", provider.url, model="real"))
        found = (await granted.score(Evaluator(ONE, models=("judge=silent",)))).usage
        reported = (await granted.score(ONE)).usage
    await models.directory.delete("default", "silent")
    assert (found.requests, found.estimated, found.output_tokens) == (1, 1, len(json.dumps(message)) // 4)
    assert (reported.requests, reported.estimated, reported.input_tokens > 0) == (1, 0, True)
    both = found + reported
    assert usage_text(both).endswith(f"{both.output_tokens} tokens (estimated for 1 request)")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("budget", "says", "asked"),
    [
        (ModelBudget(requests=2), "may call models at most 2 times", 2),
        (ModelBudget(tokens=1), "may use at most 1 tokens", 1),
        (ModelBudget(cost=0.0005), "may cost at most 0.0005", 1),
    ],
)
async def test_a_row_over_its_budget_is_budget_exceeded(
    granted: Granting, budget: ModelBudget, says: str, asked: int
) -> None:
    before = len(granted.server.asked)
    result = await granted.score(Evaluator(MANY, models=("judge",), budget=budget))
    assert (result.status, result.error.code, result.score) == (Status.FAILED, ErrorCode.BUDGET_EXCEEDED, None)
    assert says in result.error.message
    assert len(granted.server.asked) - before == result.usage.requests == asked


async def test_a_job_over_its_budget_fails_the_rows_that_are_left(granted: Granting) -> None:
    meter, before = Meter(ModelBudget(requests=3), "the job"), len(granted.server.asked)
    stream = granted.service.evaluate_rows(
        Evaluator(ONE, models=("judge",)),
        [Row({}, str(n)) for n in range(6)],
        caller=Caller(terms=ModelTerms(meter=meter)),
    )
    found = {index: result async for index, result in stream}
    codes = [one.error.code if one.error else None for one in found.values()]
    assert sorted(map(str, codes)) == ["None"] * 3 + ["budget_exceeded"] * 3
    assert len(granted.server.asked) - before == 3


@pytest.mark.long
async def test_a_workspace_over_its_day_is_refused_on_every_host_of_its_database(
    provider: ModelServer, tmp_path: Path
) -> None:
    day = {"requests": 2}
    async with granting_on("bubblewrap", provider, tmp_path, model_day=day) as one:
        codes = [(await one.score(ONE)).error for _ in range(3)]
        assert codes[:2] == [None, None]
        assert codes[2].code is ErrorCode.BUDGET_EXCEEDED
    async with granting_on("bubblewrap", provider, tmp_path, model_day=day) as two:
        assert (await two.score(ONE)).error.code is ErrorCode.BUDGET_EXCEEDED
        used = await ModelService(two.service.settings, two.store).list_usage("default", days=1)
        assert [(row.model, row.requests, row.cost > 0) for row in used] == [("judge", 2, True)]


@pytest.mark.long
async def test_two_hosts_of_a_database_share_a_workspace_s_day(provider: ModelServer, tmp_path: Path) -> None:
    day, before = {"requests": 5}, len(provider.asked)
    async with (
        granting_on("bubblewrap", provider, tmp_path, model_day=day) as one,
        granting_on("bubblewrap", provider, tmp_path, model_day=day) as two,
    ):
        assert [(await host.score(ONE, "first")).score for host in (one, two)] == [1, 1]
        rows = [Row({}, f"row {number}") for number in range(6)]
        found = await asyncio.gather(
            *(host.service.evaluate_batch(Evaluator(ONE, models=("judge",)), rows) for host in (one, two))
        )
        codes = [result.error.code if result.error else None for results in found for result in results]
    assert (codes.count(None), codes.count(ErrorCode.BUDGET_EXCEEDED)) == (3, 9)
    assert len(provider.asked) - before == 5


@pytest.mark.long
@pytest.mark.parametrize(
    "answer", [Reply(302, headers={"Location": "/x"}), Reply(200, headers={"Content-Encoding": "gzip"}), None]
)
async def test_a_request_without_an_answer_counts_in_the_day_of_every_host(
    tmp_path: Path, answer: Reply | None
) -> None:
    with ModelServer(faults=lambda _question, _attempt: answer, plays_all=True) as faulty:
        async with granting_on("bubblewrap", faulty, tmp_path, model_day={"requests": 1}) as granting:
            if answer is None:
                url = "http://127.0.0.1:1/v1"
                gone = RegisteredModel("gone", url, model="real", retries=0)
                await ModelService(granting.service.settings, granting.store).directory.add("default", gone)
            evaluator = Evaluator(ONE, models=("judge=gone" if answer is None else "judge",))
            first = await granting.score(evaluator)
            assert (first.score, first.usage.requests) == (0, 1)
        async with granting_on("bubblewrap", faulty, tmp_path, model_day={"requests": 1}) as granting:
            used = await ModelService(granting.service.settings, granting.store).list_usage("default", days=1)
            assert [row.requests for row in used] == [1]
            assert (await granting.score(evaluator)).error.code is ErrorCode.BUDGET_EXCEEDED
