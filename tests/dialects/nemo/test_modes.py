"""One metric runs in the user's own process, in sandboxes and on a host. The results, and their classes, are the same."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.sdk import (
    EvaluationError,
    Evaluator,
    ExactMatchMetric,
    FieldMapping,
    LLMJudgeMetric,
    Model,
    NoSource,
    RunConfig,
    RunConfigOnlineModel,
    Sandboxes,
)
from evaluator_host.types.errors import NotFound
from evaluator_host.vendors.nemo.sdk.source import metric_code
from tests.conftest import DATA_DIR
from tests.dialects.nemo.judge_model import judge_server
from tests.dialects.nemo.own_metric import LengthMetric
from tests.engines import engine_address
from tests.model_server import ModelServer
from tests.server import FORKED, Server

pytestmark = pytest.mark.engine

ROWS: list[dict[str, Any]] = [{"output": "a b"}, {"output": "a b c", "most": 9}, {"output": "", "x": 1}, {"output": 7}]
BAD = [*ROWS[:2], {"output": "x", "bad": True}]


@pytest.fixture(autouse=True)
def same_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATOR_HOST_DATA_DIR", str(DATA_DIR))
    monkeypatch.setenv("EVALUATOR_HOST_SANDBOX", "bubblewrap")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with judge_server() as server:
        yield server


@pytest.fixture(scope="module")
def url(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    allowed = {"EVALUATOR_HOST_JUDGE_HOSTS": json.dumps(["127.0.0.1"])}
    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=FORKED | allowed) as server:
        yield server.url


@pytest.mark.long
def test_results_are_the_same_wherever_a_metric_runs(url: str) -> None:
    metrics = [LengthMetric(2), ExactMatchMetric(reference="{{item.said}}", candidate="a b")]
    rows, mapping = [{"said": row["output"], "most": 3} for row in ROWS[:2]], FieldMapping(output="said")
    here = Evaluator().run_sync(metrics, rows, field_mapping=mapping)
    apart = Evaluator(sandbox=True).run_sync(metrics, rows, field_mapping=mapping)
    there = Evaluator().submit(metrics, rows, url=url, field_mapping=mapping).get_result()
    assert apart.model_dump_json() == here.model_dump_json()
    assert there.model_dump_json() == here.model_dump_json()
    assert type(here) is type(apart) is type(there)

    one = Evaluator().run_sync(LengthMetric(), ROWS)
    batch = Evaluator(client=Sandboxes(isolation="batch")).run_sync(
        LengthMetric(), ROWS, config=RunConfig(parallelism=2)
    )
    assert batch.model_dump_json() == one.model_dump_json()
    assert one.aggregate_scores.scores[2].nan_count == 2


@pytest.mark.long
def test_docker_gives_the_same_results_and_a_block_serves_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATOR_HOST_SANDBOX", "docker")
    monkeypatch.setenv("EVALUATOR_HOST_DOCKER_HOST", engine_address())
    metrics = [LengthMetric(2), ExactMatchMetric(reference="{{item.output}}", candidate="a b")]

    async def apart() -> list[str]:
        async with Sandboxes(timeout_s=60) as sandboxes:
            own = Evaluator(client=sandboxes)
            return [(await own.run(given, ROWS[:2])).model_dump_json() for given in (metrics, metrics[0])]

    here = [Evaluator().run_sync(given, ROWS[:2]).model_dump_json() for given in (metrics, metrics[0])]
    assert asyncio.run(apart()) == here


@pytest.mark.long
def test_rows_that_fail_or_hang_do_not_affect_other_rows() -> None:
    rows = [*BAD, {"output": "x", "hangs": True}]
    result = Evaluator(sandbox=True).run_sync(LengthMetric(), rows, on_error="row", row_timeout_s=1.0)
    assert [row.status for row in result.row_scores] == ["ok", "ok", "error", "error"]
    errors = [(row.metric_errors or {}).get("length") for row in result.row_scores[2:]]
    assert errors == ["a bad row", "the row did not finish within 1 s"]
    with pytest.raises(EvaluationError, match="for metric 'length' on row 2: a bad row"):
        Evaluator(sandbox=True).run_sync(LengthMetric(), BAD)


@pytest.mark.long
def test_a_job_is_a_submission(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    submission = Evaluator().submit(LengthMetric(), BAD, url=url, name="words")
    assert submission.evaluators == ("words@1",)
    seen: list[int] = []
    assert submission.wait_until_done(on_progress=lambda job: seen.append(job.progress.done)).progress.done == 3
    assert seen[-1] == 3
    result = submission.get_result()
    assert [row.metric_errors for row in result.row_scores] == [None, None, {"length": "a bad row"}]
    submission.print_summary()
    assert capsys.readouterr().out == result.format_summary() + "\n"

    again = Evaluator().submit(LengthMetric(), BAD, url=url, name="words")
    changed = Evaluator().submit(LengthMetric(3), BAD, url=url, name="words", config=RunConfig(limit_samples=1))
    assert (again.evaluators, changed.evaluators) == (("words@1",), ("words@2",))
    assert again.dataset == submission.dataset != changed.dataset
    assert len(changed.get_result().row_scores) == 1
    with pytest.raises(NotFound):
        Evaluator().submit(LengthMetric(), BAD, url=f"{url}/elsewhere")


@pytest.mark.long
def test_judges_and_targets_are_asked_in_every_mode(url: str, model: ModelServer) -> None:
    judge = LLMJudgeMetric(
        model=Model(url=model.url, name="judge", format="openai"),
        scores=[{"name": "quality", "minimum": 1, "maximum": 5}],
        prompt_template={"messages": [{"role": "user", "content": "{{ said }}"}]},
    )
    rows = [{"said": "good"}, {"said": "bad"}]
    here = Evaluator().run_sync(judge, rows)
    apart = Evaluator(sandbox=True).run_sync(judge, rows)
    there = Evaluator().submit(judge, rows, url=url).get_result()
    statistics = [one.aggregate_scores.model_dump_json() for one in (here, apart, there)]
    assert statistics[0] == statistics[1] == statistics[2]
    assert here.aggregate_scores.scores[0].mean == 3.0

    asked: dict[str, Any] = {
        "target": Model(url=model.url, name="target", format="openai"),
        "prompt_template": {"messages": [{"role": "user", "content": "{{ said }}"}]},
        "config": RunConfigOnlineModel(parallelism=2),
    }
    metric = ExactMatchMetric(reference='{"quality": 4, "tone": "kind"}')
    means = [
        Evaluator().run_sync(metric, rows, **asked),
        Evaluator(sandbox=True).run_sync(metric, rows, **asked),
        Evaluator().submit(metric, rows, url=url, **asked).get_result(),
    ]
    assert [one.aggregate_scores.scores[0].mean for one in means] == [0.5, 0.5, 0.5]
    assert [len(one.row_scores[0].requests) for one in means] == [1, 1, 1]


def test_a_metric_takes_along_what_it_needs_and_nothing_else() -> None:
    code = metric_code(LengthMetric(2))
    assert "from nemo_evaluator_sdk import MetricInput" in code
    assert 'LIMITS["words"] += 1' in code
    assert "@lru_cache\ndef most" in code
    assert "class Words" in code
    assert "unused" not in code
    assert "print(" not in code


def test_a_metric_that_cannot_be_sent_says_why(tmp_path: Path) -> None:
    class Inner(LengthMetric):
        pass

    with pytest.raises(NoSource, match="at the top of a module"):
        metric_code(Inner())
    unfit = LengthMetric()
    unfit.factor = object()
    with pytest.raises(NoSource, match="its attributes are factor"):
        metric_code(unfit)
    namespace: dict[str, Any] = {"__name__": "nowhere"}
    exec("class Lost:\n    type = 'lost'", namespace)
    with pytest.raises(NoSource, match="define the metric in a file"):
        metric_code(namespace["Lost"]())
    with pytest.raises(TypeError, match="not both"):
        Evaluator(Sandboxes(), sandbox=True)
