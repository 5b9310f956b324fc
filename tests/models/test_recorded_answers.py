"""Answers of models are recorded, and later rows may be scored with recorded answers only."""

import json
from dataclasses import replace

import pytest

from evaluator_host.platform.evaluators.judges import JudgeIn
from evaluator_host.platform.models.service import ModelService
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator, ModelKind, Replay
from evaluator_host.types.models import RegisteredModel
from evaluator_host.types.outcome import ErrorCode
from tests.model_server import ModelServer
from tests.models.conftest import Granting
from tests.models.judges import ASK, ONE, node_judge, python_judge

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(300),
    pytest.mark.long("tests/store/test_answers.py keeps and finds recorded answers"),
]

VOTES = (
    ASK
    + """
from concurrent.futures import ThreadPoolExecutor

def vote(question):
    for _ in range(2):
        status, body = ask("judge", question, temperature=1)
        if status == 200:
            return body["id"]

def evaluate(inputs, outputs, trace):
    with ThreadPoolExecutor(3) as pool:
        votes = [*pool.map(vote, [outputs] * 5), vote(outputs)]
    return {"score": len(set(votes)) / 6, "reason": ", ".join(sorted(map(str, votes)))}
"""
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("granting", "name"),
    [("bubblewrap", "every"), ("bubblewrap", "node"), ("docker", "fetch")],
    indirect=["granting"],
)
async def test_a_required_recording_gives_the_same_scores_without_the_provider(granting: Granting, name: str) -> None:
    """With only recorded answers, the scores are the same as with the provider.

    The test runs with every real Python client and with Node's clients, on Docker only in JavaScript; a test below runs
    Python on Docker, after the provider is gone.
    """
    judge = node_judge("openai" if name == "node" else name) if name in ("node", "fetch") else python_judge(name)
    judge = replace(judge, models=("judge=recorded", "claude=recorded-claude"))
    models = ModelService(granting.service.settings, granting.store)
    with ModelServer(plays_all=True) as provider:
        for own, kind in (("recorded", ModelKind.OPENAI), ("recorded-claude", ModelKind.ANTHROPIC)):
            await models.directory.add("default", RegisteredModel(own, provider.url, kind, "real"))
        first = await granting.score(judge, "replay", replay=Replay.PREFER)
        lines = [line async for line in models.recordings.export("default") if b'"recorded' in line]
    assert (first.score, first.error) == (1.0, None)
    for own in ("recorded", "recorded-claude"):
        await models.store.delete_answers("default", model=own)
    missing = await granting.score(judge, "replay", replay=Replay.REQUIRE)
    assert missing.error.code is ErrorCode.TARGET_FAILED
    assert "recorded" in missing.error.message

    async def sent():
        for line in lines:
            yield line

    assert await models.recordings.import_lines("default", sent()) == len(lines) > 0
    for replay in (Replay.REQUIRE, Replay.PREFER):
        again = await granting.score(judge, "replay", replay=replay)
        found = (again.score, again.reason, again.usage.requests, again.usage.cost)
        assert found == (1.0, first.reason, 0, 0.0), again.error
        # if two clients ask the same question, the second answer is a recorded one
        assert again.usage.replayed == first.usage.requests + first.usage.replayed
    for own in ("recorded", "recorded-claude"):
        await models.directory.delete("default", own)
    with pytest.raises(InvalidRequest, match="no model 'recorded'"):
        await granting.score(judge, "replay")


async def test_each_of_several_votes_has_its_own_recorded_answer(granted: Granting) -> None:
    models = ModelService(granted.service.settings, granted.store)
    voting = Evaluator(VOTES, models=("judge=votes",))

    def second_fails(_question: str, attempt: int) -> int | None:
        return 400 if attempt == 2 else None

    with ModelServer(plays_all=True, faults=second_fails) as provider:
        await models.directory.add("default", RegisteredModel("votes", provider.url, model="real"))
        first = await granted.score(voting, "is it kind", replay=Replay.PREFER)
        assert (first.score, first.error, first.usage.requests) == (1.0, None, 7)
        for replay in (Replay.PREFER, Replay.REQUIRE):
            again = await granted.score(voting, "is it kind", replay=replay)
            assert (again.reason, again.usage.requests, again.usage.replayed) == (first.reason, 0, 6)
        lines = [line async for line in models.recordings.export("default") if b'"votes"' in line]
        await models.store.delete_answers("default", model="votes")

        async def sent():
            for line in lines:
                yield line

        assert await models.recordings.import_lines("default", sent()) == 6
        again = await granted.score(voting, "is it kind", replay=Replay.REQUIRE)
        assert (again.reason, again.usage.replayed) == (first.reason, 6)
    await models.directory.delete("default", "votes")


async def test_models_of_one_name_at_two_servers_share_no_answers(granted: Granting) -> None:
    models = ModelService(granted.service.settings, granted.store)

    async def used(name: str, replay: Replay) -> tuple[int, int]:
        evaluator = Evaluator(ONE, models=(f"judge={name}",))
        usage = (await granted.score(evaluator, "same question", replay=replay)).usage
        return usage.requests, usage.replayed

    with ModelServer(plays_all=True) as first, ModelServer(plays_all=True) as second:
        for name, server in (("first", first), ("second", second), ("again", first)):
            await models.directory.add("default", RegisteredModel(name, server.url, model="real"))
        assert [await used(name, Replay.PREFER) for name in ("first", "second", "again")] == [(1, 0), (1, 0), (0, 1)]
        lines = [json.loads(line) async for line in models.recordings.export("default") if b'"first"' in line]
        for name in ("first", "second"):
            await models.store.delete_answers("default", model=name)
        for line in lines:
            del line["request"]["server"]  # version 1.0.0 recorded and exported answers in this form

        async def sent():
            for line in lines:
                yield json.dumps(line).encode() + b"\n"

        assert await models.recordings.import_lines("default", sent()) == 1
        assert [await used(name, Replay.PREFER) for name in ("first", "second")] == [(0, 1), (1, 0)]
    for name in ("first", "second", "again"):
        await models.directory.delete("default", name)


@pytest.mark.parametrize("granting", ["docker"], indirect=True)
async def test_judges_and_code_score_the_same_on_docker_when_the_provider_is_gone(granting: Granting) -> None:
    form = {
        "model": "gone",
        "prompt": "{{ outputs }}",
        "labels": [{"label": "ok", "score": 1}, {"label": "no", "score": 0}],
    }
    judge = JudgeIn.model_validate(form).to_model(Evaluator(""))
    code = Evaluator(ONE, models=("judge=gone",))
    models = ModelService(granting.service.settings, granting.store)
    with ModelServer(plays_all=True) as provider:
        await models.directory.add("default", RegisteredModel("gone", provider.url, model="real"))
        first = [await granting.score(one, "is it ok", replay=Replay.PREFER) for one in (judge, code)]
    again = [await granting.score(one, "is it ok", replay=Replay.REQUIRE) for one in (judge, code)]
    await models.directory.delete("default", "gone")
    assert [one.score for one in first] == [one.score for one in again] == [1.0, 1.0]
    assert (first[0].label, again[0].label) == ("ok", "ok")
    assert [one.usage.requests for one in first] == [one.usage.replayed for one in again] == [1, 1]
    assert [one.evaluator.grants for one in again] == [("model:gone",), ("model:judge=gone",)]
    assert {one.sandbox.backend for one in again} == {"docker"}
