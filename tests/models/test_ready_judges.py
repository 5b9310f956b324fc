"""Ready-made judges: each scores its own rows with a model's answers, and then again with the recorded answers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.platform.evaluators.ready_judges import ready_judges
from evaluator_host.types.evaluator import Evaluator, Replay
from evaluator_host.types.stored import ReadyJudge
from tests.docs.blocks import read
from tests.model_server import ModelServer, Reply
from tests.models.conftest import KEY
from tests.models.test_host import command
from tests.server import FORKED, Server, new_home

READY = ready_judges()


def test_there_are_ten_and_the_page_of_models_lists_them() -> None:
    assert len(READY) == 10
    page = read("docs/models.md").partition("### Ready-made judges")[2].partition("###")[0]
    for one in READY:
        assert f"`{one.name}`" in page
        assert {case["label"] for case in one.cases} <= {label["label"] for label in one.judge["labels"]}  # type: ignore[index, union-attr]
        assert len({case["label"] for case in one.cases}) > 1, one.name


@pytest.fixture(scope="module")
def player() -> Iterator[ModelServer]:
    """A model server that gives each row the answer in the row's case; the output in the prompt shows which case it is."""
    said = {}
    for one in READY:
        for case in one.cases:
            text = case["outputs"] if isinstance(case["outputs"], str) else json.dumps(case["outputs"])
            said[one.judge["system"], text] = {"reason": case["reason"], "score": case["label"]}

    def answer(question: str, _: int) -> Reply:
        system = server.bodies[-1]["messages"][0]["content"]
        texts = [text for task, text in said if str(task) in system and f"\n{text}" in question]
        # the prompt may also contain the output of another case, but only after its own
        first = min(texts, key=question.index)
        found = next(one for (task, text), one in said.items() if str(task) in system and text == first)
        content = json.dumps(found)
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "1", "object": "chat.completion", "model": "real", "choices": [choice], "usage": usage}
        return Reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    server = ModelServer(key=KEY, faults=answer)
    with server:
        yield server


@pytest.fixture(scope="module")
def host(player: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = new_home(tmp_path_factory.mktemp("ready"))
    environment = {
        **FORKED,
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'evaluator-host.db'}",
        "EVALUATOR_HOST_MODELS": json.dumps({"judge": {"base_url": player.url, "model": "real", "key": KEY}}),
    }
    with Server(data_dir=home, log=home.parent / "log", environment=environment) as running:
        yield running


@pytest.mark.engine
@pytest.mark.timeout(200)
class TestOnAHost:
    @pytest.mark.sampled(12)
    @pytest.mark.parametrize("ready", READY, ids=[one.name for one in READY])
    def test_it_scores_its_rows_and_again_by_recorded_answers(self, ready: ReadyJudge, host: Server) -> None:
        scores = {one["label"]: one["score"] for one in ready.judge["labels"]}  # type: ignore[index, union-attr]
        with Client(host.url) as client:
            offered = next(one for one in client.evaluators.ready_judges() if one.name == ready.name)
            evaluator = Evaluator("", judge={**offered.judge, "model": "judge"}, threshold=offered.threshold)
            client.evaluators.create(ready.name, evaluator)
            for case in ready.cases:
                for replay in (Replay.PREFER, Replay.REQUIRE):
                    got = client.evaluate(ready.name, inputs=case["inputs"], outputs=case["outputs"], replay=replay)
                    assert got.error is None, got.error
                    wanted = scores[case["label"]]
                    assert (got.label, got.score, got.reason) == (case["label"], wanted, case["reason"])
                    assert got.passed is (wanted >= ready.threshold)

    @pytest.mark.long
    def test_the_command_line_prints_a_form(self, host: Server, tmp_path: Path) -> None:
        assert "sql-equivalence" in command(host, "evaluators", "judges")
        file = tmp_path / "tone.json"
        file.write_text(command(host, "evaluators", "judges", "tone", "--model", "judge"))
        assert "own-tone" in command(host, "evaluators", "create", "own-tone", str(file), "--judge")
        assert "did you mean tone?" in command(host, "evaluators", "judges", "tones", code=2)
