"""`evaluator_host.sdk` works with models: with a judge, a target, rows that fail, and rows that take too long. The
model server is real.
"""

import asyncio
from collections.abc import Iterator

import pytest

from evaluator_host.sdk import (
    EvaluationError,
    EvaluationPhase,
    Evaluator,
    ExactMatchMetric,
    LLMJudgeMetric,
    LocalBackend,
    MetricInput,
    MetricOutput,
    MetricOutputSpec,
    MetricResult,
    Model,
    ModelRef,
    RangeScore,
    RubricScore,
    RunConfig,
    RunConfigOnlineModel,
)
from tests.dialects.nemo.judge_model import judge_server
from tests.model_server import ModelServer

TONE = RubricScore(name="tone", rubric=[{"label": "kind", "value": 1}, {"label": "rude", "value": 0}])
QUALITY = RangeScore(name="quality", minimum=1, maximum=5)
KEY = "key-of-the-judge"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with judge_server(KEY) as server:
        yield server


def judge(server: ModelServer, *scores: object, **options: object) -> LLMJudgeMetric:
    named = {"model": Model(url=server.url, name="judge", api_key_secret="judge-key", format="openai"), **options}
    return LLMJudgeMetric(scores=list(scores), **named)


def test_a_judge_takes_its_key_from_the_environment(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = judge(model, QUALITY, prompt_template={"messages": [{"role": "user", "content": "{{ said }}"}]})
    with pytest.raises(ValueError, match="Missing secret 'judge-key'"):
        Evaluator().run_sync(metric, [{"said": "good"}])
    monkeypatch.setenv("JUDGE_KEY", KEY)
    result = Evaluator().run_sync(metric, [{"said": "good"}])
    assert result.aggregate_scores.scores[0].mean == 4.0
    assert KEY not in result.model_dump_json()


def test_a_judge_without_a_prompt_is_told_its_scores(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    Evaluator().run_sync(judge(model, QUALITY, TONE), [{"said": "good"}])
    system, user = model.bodies[-1]["messages"]
    assert "quality, from 1 to 5" in system["content"]
    assert "- kind\n- rude" in system["content"]
    assert user["content"] == "{'said': 'good'}"


def test_an_answer_that_is_not_a_level_gives_no_score_and_no_failure(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    result = Evaluator().run_sync(judge(model, TONE), [{"said": "words"}, {"said": "good"}])
    (statistics,) = result.aggregate_scores.scores
    assert (statistics.count, statistics.nan_count, statistics.mode_category) == (1, 1, "kind")
    assert result.row_scores[0].metrics["llm-judge"][1].value == ""


async def test_a_judge_may_be_a_reference(model: ModelServer) -> None:
    backend = LocalBackend()
    metric = judge(model, QUALITY, model=ModelRef("mine/judge"))
    with pytest.raises(ValueError, match="'mine/judge' is not registered"):
        await Evaluator(client=backend).run(metric, [{"said": "good"}])
    backend.model_resolver.register_model(ModelRef("mine/judge"), Model(url=model.url, name="judge", format="openai"))
    with pytest.raises(EvaluationError, match="401"):  # the server requires a key, and none is sent
        await Evaluator(client=backend).run(metric, [{"said": "good"}])


def test_a_target_that_fails_says_so(model: ModelServer) -> None:
    target = Model(url=model.url, name="m", format="openai")
    with pytest.raises(EvaluationError, match=r"Row 0 failed inference.*401") as failed:
        Evaluator().run_sync(
            ExactMatchMetric(reference="x"), [{"question": "q"}], target=target, config=RunConfigOnlineModel()
        )
    assert failed.value.phase is EvaluationPhase.SAMPLE_GENERATION


class Slow:
    """A metric that fails if the row has `bad`, and otherwise waits for the number of seconds in the row."""

    type = "slow"

    def output_spec(self) -> list[MetricOutputSpec]:
        return [MetricOutputSpec.continuous_score("p"), MetricOutputSpec.label("word")]

    async def compute_scores(self, metric_input: MetricInput) -> MetricResult:
        data = metric_input.row.data
        if data.get("bad"):
            raise ValueError("no such thing")
        await asyncio.sleep(data.get("seconds", 0))
        return MetricResult(outputs=[MetricOutput(name="p", value=1.0), MetricOutput(name="word", value="w")])


ROWS = [{}, {"bad": True}, {"seconds": 30}]


def test_rows_that_fail_or_take_too_long_do_not_end_the_run() -> None:
    result = Evaluator().run_sync(Slow(), ROWS, on_error="row", row_timeout_s=0.3, config=RunConfig(parallelism=3))
    assert [row.status for row in result.row_scores] == ["ok", "error", "error"]
    errors = [row.metric_errors for row in result.row_scores]
    assert errors == [None, {"slow": "no such thing"}, {"slow": "no result within 0.3 s"}]
    (statistics,) = result.aggregate_scores.scores
    assert (statistics.count, statistics.nan_count) == (1, 2)
    several = Evaluator().run_sync([Slow(), ExactMatchMetric(reference="x", candidate="x")], ROWS[:2], on_error="row")
    assert several.row_scores[1].metric_errors == {"slow": "no such thing"}
    assert several.row_scores[1].metrics["exact-match"][0].value == 1


def test_by_default_a_failed_row_ends_the_run() -> None:
    with pytest.raises(EvaluationError, match="on row 1: no such thing"):
        Evaluator().run_sync(Slow(), ROWS[:2])
    with pytest.raises(EvaluationError, match=r"on row 0: no result within 0\.2 s"):
        Evaluator().run_sync(Slow(), ROWS[2:], row_timeout_s=0.2)
