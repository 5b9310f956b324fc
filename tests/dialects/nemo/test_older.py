"""The older routes of NeMo Evaluator work under each prefix, and a job can have a judge as its metric."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.dialects.nemo.judge_model import judge_server
from tests.model_server import ModelServer
from tests.server import FORKED, Server

pytestmark = pytest.mark.engine

KEY = "sk-of-the-judge-and-of-nobody-else"
PREFIXES = ("/apis/evaluation/v2/workspaces/default", "/v2/workspaces/default/evaluation", "/v2/workspaces/default")
EXACT = {"type": "exact-match", "reference": "{{item.right}}", "candidate": "{{item.said}}"}
ROWS = [{"right": "Oslo", "said": "oslo!"}, {"right": "Bern", "said": "Genf"}]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with judge_server(KEY) as server:
        yield server


@pytest.fixture(scope="module")
def client(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    configured = {"mine/judge": {"base_url": model.url, "model": "judge-2", "secret": "judge-key"}}
    environment = {"EVALUATOR_HOST_MODELS": json.dumps(configured)}
    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=FORKED | environment) as server:
        assert server.client.put("/v1/secrets/judge-key", json={"value": KEY}).status_code in (200, 201)
        yield server.client


def evaluated(client: httpx.Client, prefix: str, metric: Any, rows: Any, query: str = "") -> httpx.Response:
    body = {"metric": metric, "dataset": {"rows": rows}}
    return client.post(f"{prefix}/metric-evaluate{query}", json=body)


def completed(client: httpx.Client, job: str) -> dict[str, Any]:
    until = time.monotonic() + 120
    while True:
        status: dict[str, Any] = client.get(f"{job}/status").json()
        if status["status"] == "completed":
            return status
        assert status["status"] != "error", status
        assert time.monotonic() < until, status
        time.sleep(0.1)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_few_rows_are_scored_at_once(client: httpx.Client, prefix: str) -> None:
    answer = evaluated(client, prefix, EXACT, ROWS)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "metric": {**EXACT, "labels": {}, "supported_job_types": ["online", "offline"]},
        "aggregate_scores": [
            {"name": "exact-match", "count": 2, "nan_count": 0, "sum": 1.0, "mean": 0.5, "min": 0.0, "max": 1.0}
        ],
        "row_scores": [
            {"index": index, "row": row, "scores": {"exact-match": score}}
            for index, (row, score) in enumerate(zip(ROWS, (1.0, 0.0), strict=True))
        ],
    }


@pytest.mark.long
def test_the_statistics_are_those_that_are_asked_for(client: httpx.Client) -> None:
    query = "?aggregate_fields=mean&aggregate_fields=percentiles"
    (score,) = evaluated(client, PREFIXES[0], EXACT, ROWS, query).json()["aggregate_scores"]
    assert set(score) == {"name", "count", "mean", "percentiles"}
    assert (score["percentiles"]["p10"], score["percentiles"]["p100"]) == (0.0, 1.0)
    assert evaluated(client, PREFIXES[0], EXACT, ROWS, "?aggregate_fields=colour").status_code == 422
    bleu = {"type": "bleu", "references": ["{{item.right}}"], "candidate": "{{item.said}}"}
    names = [one["name"] for one in evaluated(client, PREFIXES[0], bleu, ROWS).json()["aggregate_scores"]]
    assert names == ["sentence", "corpus"]


def test_a_row_that_cannot_be_scored_ends_it(client: httpx.Client) -> None:
    failed = evaluated(client, PREFIXES[0], EXACT, [ROWS[0], {"right": "Bern"}])
    assert failed.status_code == 500
    assert failed.json()["detail"].startswith("Evaluation failed at row 1: ExactMatchMetric(")
    assert "missing_key='said'" in failed.json()["detail"]
    for metric, rows, status in (
        (EXACT, [], 422), (EXACT, ROWS * 6, 422), ({"type": "mine"}, ROWS, 422), ("default/none", ROWS, 404),
    ):  # fmt: skip
        assert evaluated(client, PREFIXES[0], metric, rows).status_code == status


@pytest.mark.long
def test_jobs_of_one_metric_by_reference(client: httpx.Client) -> None:
    metrics, jobs = f"{PREFIXES[1]}/metrics", f"{PREFIXES[1]}/metric-jobs"
    kept = client.post(f"{metrics}/cities", json=EXACT)
    assert (kept.status_code, kept.json()["type"], kept.json()["name"]) == (201, "exact-match", "cities")
    assert client.get(f"{metrics}/cities").json()["reference"] == EXACT["reference"]
    body = {
        "name": "old",
        "spec": {"metric": "default/cities", "dataset": {"rows": ROWS}, "params": {"parallelism": 1}},
    }
    made = client.post(jobs, json=body)
    assert made.status_code == 201, made.text
    completed(client, f"{jobs}/old")
    (score,) = client.get(f"{jobs}/old/results/aggregate-scores/download").json()["scores"]
    assert (score["name"], score["mean"]) == ("exact-match.exact-match", 0.5)
    assert "old" in [one["name"] for one in client.get(f"{PREFIXES[2]}/metric-job-results").json()["data"]]
    refused = client.post(jobs, json={"spec": {"metric": EXACT, "dataset": {"rows": ROWS}, "params": {"colour": 1}}})
    assert [problem["field"] for problem in refused.json()["errors"]] == ["spec.params.colour"]
    assert client.delete(f"{metrics}/cities").json()["message"]
    assert client.get(f"{metrics}/cities").status_code == 404


@pytest.mark.long
def test_a_judge_is_a_metric_like_any_other(client: httpx.Client, model: ModelServer) -> None:
    levels = [{"label": "rude", "value": 0}, {"label": "kind", "value": 1}]
    judge = {
        "type": "llm-judge",
        "model": "mine/judge",
        "prompt_template": {"messages": [{"role": "user", "content": "Judge {{item.said}}"}]},
        "scores": [{"name": "quality", "minimum": 1, "maximum": 5}, {"name": "tone", "rubric": levels}],
    }
    answer = evaluated(client, PREFIXES[0], judge, ROWS)
    assert answer.status_code == 200, answer.text
    refused = evaluated(client, PREFIXES[0], {**judge, "model": "mine/nothing"}, ROWS)
    assert refused.status_code == 422, "the status must not be 500, after which clients try again"
    assert "does not know the address of the model mine/nothing" in refused.text
    outputs = [{"name": name, "value_json_schema": {"type": "number"}} for name in ("quality", "tone")]
    bundle = {"metric_type": "llm-judge", "outputs": outputs, "payload": {"kind": "inline", "metric": judge}}
    jobs = "/apis/evaluator/v2/workspaces/default/evaluate/jobs"
    made = client.post(jobs, json={"spec": {"metrics": [bundle], "dataset": ROWS}})
    assert made.status_code == 201, made.text
    completed(client, f"{jobs}/{made.json()['name']}")
    scores = client.get(f"{jobs}/{made.json()['name']}/results/aggregate-scores/download").json()["scores"]
    assert [(one["name"], one["score_type"]) for one in scores] == [
        ("llm-judge.quality", "range"), ("llm-judge.tone", "rubric"),
    ]  # fmt: skip
    spread = [{**level, "description": None, "count": count} for level, count in zip(levels, (2, 0), strict=True)]
    assert (scores[1]["rubric_distribution"], scores[1]["mode_category"]) == (spread, "rude")
    assert {body["model"] for body in model.bodies} == {"judge-2"}
