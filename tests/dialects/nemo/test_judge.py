"""A judge in a sandbox: if the operator allows it, the host calls the model, with a key that nothing in the sandbox
sees.
"""

import json
from collections.abc import Iterator

import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.outcome import ErrorCode
from evaluator_host.types.results import LevelCount
from tests.dialects.nemo.judge_model import judge_server
from tests.model_server import ModelServer
from tests.server import FORKED, Server

pytestmark = pytest.mark.engine

KEY = "sk-of-the-judge-and-of-nobody-else"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with judge_server(KEY) as server:
        yield server


@pytest.fixture(scope="module")
def host(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    address = model.url.split("/")[2]
    configured = {"mine/judge": {"base_url": model.url, "model": "judge-2", "secret": "judge-key"}}
    allowed = {"EVALUATOR_HOST_JUDGE_HOSTS": json.dumps([address]), "EVALUATOR_HOST_MODELS": json.dumps(configured)}
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(log=log, environment=FORKED | allowed) as server:
        yield server
    assert KEY not in log.read_text()


@pytest.fixture(scope="module")
def client(host: Server) -> Iterator[Client]:
    with Client(host.url) as opened:
        opened.secrets.set("judge-key", KEY)
        yield opened


def judge(url: str, *, after: str = "", **options: object) -> Evaluator:
    given = {
        "prompt_template": {"messages": [{"role": "user", "content": "Judge {{item.said}}"}]},
        "scores": [
            {"name": "quality", "minimum": 1, "maximum": 5},
            {"name": "tone", "rubric": [{"label": "rude", "value": 0}, {"label": "kind", "value": 1}]},
        ],
        "model": {"url": url, "name": "judge-1", "format": "openai", "api_key_secret": "judge-key"},
        **options,
    }
    code = f"from nemo_evaluator_sdk import LLMJudgeMetric\nmetric = LLMJudgeMetric(**{given!r})\n{after}"
    return Evaluator(code)


def test_a_row_has_what_the_judge_says(client: Client, model: ModelServer) -> None:
    result = client.evaluate(judge(model.url), inputs={"said": "good"})
    assert result.error is None, result.error
    assert (result.metrics, result.label) == ({"quality": 4.0, "tone": 1.0}, "kind")
    sent = model.bodies[-1]
    assert (sent["model"], sent["messages"]) == ("judge-1", [{"role": "user", "content": "Judge good"}])
    assert sent["response_format"]["json_schema"]["schema"]["required"] == ["quality", "tone"]


def test_the_key_is_not_in_the_sandbox(client: Client, model: ModelServer) -> None:
    spy = """
import os
class Spy(LLMJudgeMetric):
    async def compute_scores(self, metric_input):
        print(self._api_key, sorted(os.environ.values()))
        result = await super().compute_scores(metric_input)
        print(result)
        return result
spy = Spy(**metric.model_dump())
"""
    result = client.evaluate(judge(model.url, after=spy), inputs={"said": "good"})
    assert result.metrics == {"quality": 4.0, "tone": 1.0}
    assert "held by the host" in result.logs.stdout
    assert KEY not in str(result)


@pytest.mark.long
def test_a_job_has_the_levels_of_a_rubric(client: Client, model: ModelServer) -> None:
    rows = [{"said": f"good {n}" if n % 3 else f"bad {n}"} for n in range(12)] + [{"said": "boom"}, {"said": "words"}]
    job = client.jobs.wait(client.jobs.create([judge(model.url, ignore_request_failure=True)], rows).id)
    assert (job.progress.done, job.progress.failed) == (14, 0)
    (found,) = client.jobs.results(job.id).evaluators
    quality, tone = found.metrics
    assert (quality.count, quality.nan_count, quality.mean) == (12, 2, pytest.approx((4 * 2 + 8 * 4) / 12))
    assert tone.rubric_distribution == (LevelCount("rude", 4), LevelCount("kind", 8))
    assert (tone.mode_category, quality.rubric_distribution) == ("kind", None)
    assert sorted(row.index for row in client.jobs.rows(job.id)) == list(range(14))
    assert all(row.result["score"] is None for row in client.jobs.rows(job.id))


def test_a_model_that_refuses_fails_the_row_as_in_nemo(client: Client, model: ModelServer) -> None:
    batch = client.evaluate_batch(
        judge(model.url), [Row({"said": text}) for text in ("boom", "twice good", "limits bad")]
    )
    refused, again, limited = batch.results
    assert refused.error is not None
    assert (refused.error.code, refused.error.type) == (
        ErrorCode.USER_EXCEPTION,
        "nemo_evaluator_sdk.inference.ClientInferenceError",
    )
    assert "400" in refused.error.message
    assert (again.metrics["quality"], limited.metrics["quality"]) == (4.0, 2.0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "http://models.test/v1", "ref://mine/other", "file:///etc/passwd"]
)
def test_other_hosts_are_not_asked(url: str, client: Client) -> None:
    error = client.evaluate(judge(url), inputs={"said": "good"}).error
    assert error is not None
    assert error.code is ErrorCode.TARGET_FAILED


@pytest.mark.parametrize(
    "model_of",
    [
        "'mine/judge'",
        "Model(url='http://gateway.test/apis/inference-gateway/v2/workspaces/mine/model/judge/-/v1', name='x', format='openai')",
    ],
)
def test_a_reference_is_the_model_that_the_operator_configured(
    model_of: str, client: Client, model: ModelServer
) -> None:
    code = f"""
from nemo_evaluator_sdk import LLMJudgeMetric, Model
judge = LLMJudgeMetric(model={model_of}, scores=[{{"name": "quality", "minimum": 1, "maximum": 5}}])
"""
    result = client.evaluate(Evaluator(code), inputs={"said": "good"})
    assert (result.error, result.score) == (None, 4.0)
    assert model.bodies[-1]["model"] == "judge-2"


@pytest.mark.long
def test_a_reference_may_be_a_model_that_a_caller_made(host: Server, client: Client, model: ModelServer) -> None:
    made, providers = ("/apis/models/v2/workspaces/default" + end for end in ("/models", "/providers"))
    for name, url in (("here", model.url), ("elsewhere", "http://models.test/v1")):
        provider = {"name": name, "host_url": url, "api_key_secret_name": "default/judge-key"}
        assert host.client.post(providers, json=provider).status_code == 201
        assert host.client.post(made, json={"name": f"at-{name}", "model_providers": [name]}).status_code == 201
    assert host.client.post(made, json={"name": "nowhere"}).status_code == 201
    code = """
from nemo_evaluator_sdk import LLMJudgeMetric
judge = LLMJudgeMetric(model='default/{name}', scores=[{{"name": "quality", "minimum": 1, "maximum": 5}}])
"""
    asked = len(model.bodies)
    result = client.evaluate(Evaluator(code.format(name="at-here")), inputs={"said": "good"})
    assert (result.error, result.score) == (None, 4.0)
    assert [body["model"] for body in model.bodies[asked:]] == ["at-here"]
    refusals = {
        "at-elsewhere": "may not call models on models.test",
        "nowhere": "does not know the URL",
        "none": "does not know the address",
    }
    for name, said in refusals.items():
        refused = client.evaluate(Evaluator(code.format(name=name)), inputs={"said": "good"}).error
        assert refused is not None
        assert (refused.code, said in refused.message) == (ErrorCode.TARGET_FAILED, True), refused.message


def test_a_key_that_is_not_there_is_named(client: Client, model: ModelServer) -> None:
    other = {"url": model.url, "name": "judge-1", "format": "openai", "api_key_secret": "no-such-key"}
    error = client.evaluate(judge(model.url, model=other), inputs={"said": "good"}).error
    assert error is not None
    assert (error.code, "no-such-key" in error.message) == (ErrorCode.TARGET_FAILED, True)


@pytest.mark.long
def test_a_metric_that_asks_for_ever_is_stopped(client: Client, model: ModelServer) -> None:
    code = f"""
from nemo_evaluator_sdk import *
from nemo_evaluator_sdk.inference import make_inference_request
class M(Metric):
    type = "m"
    def output_spec(self):
        return [MetricOutputSpec.discrete_score("asked")]
    async def compute_scores(self, row):
        most = row.row.data["most"]
        model = Model(url={model.url!r}, name="m", format="openai", api_key_secret="judge-key")
        for n in range(most):
            await make_inference_request(model, {{"messages": [{{"role": "user", "content": f"good {{n}}"}}]}})
        return MetricResult(outputs=[MetricOutput(name="asked", value=most)])
"""
    assert client.evaluate(Evaluator(code), inputs={"most": 3}).score == 3
    before = len(model.bodies)
    error = client.evaluate(Evaluator(code), inputs={"most": 10**6}).error
    assert error is not None
    assert (error.code, "32 times" in error.message) == (ErrorCode.TARGET_FAILED, True)
    assert len(model.bodies) - before <= 32
