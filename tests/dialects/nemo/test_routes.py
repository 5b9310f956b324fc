"""NeMo's routes refuse each wrong field before anything runs, and name it. No request reaches another workspace."""

import base64
import hashlib
import io
import json
import os
import pickle
import tarfile
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.dialects.nemo.metrics import PICKLER
from tests.keyed import make_key
from tests.server import FORKED, Server

pytestmark = pytest.mark.engine

JOBS = "/apis/evaluator/v2/workspaces/default/evaluate/jobs"
FILES = "/apis/files/v2/workspaces/default/filesets"
METRICS = "/apis/evaluator/v2/workspaces/default/metrics"
MODELS = "/apis/models/v2/workspaces/default"
SECRETS = "/apis/secrets/v2/workspaces/default/secrets"
WORKSPACES = "/apis/entities/v2/workspaces"
BLEU = {"type": "bleu", "references": ["{{item.gold}}"], "labels": {}}
EXACT = {"type": "exact-match", "reference": "{{item.gold}}"}
ROWS = [{"gold": "a b c d", "answer": "a b c d"}, {"gold": "e f g h", "answer": "x"}]


def inline(config: dict[str, Any], *outputs: str) -> dict[str, Any]:
    declared = [{"name": name, "value_json_schema": {"type": "number"}} for name in outputs]
    return {"metric_type": config["type"], "outputs": declared, "payload": {"kind": "inline", "metric": config}}


def pickled(blob: bytes = b"never opened here", **changes: Any) -> dict[str, Any]:
    payload = {
        "kind": "cloudpickle",
        "python_version": "3.11.7",
        "cloudpickle_version": "3.1.2",
        "pickle_protocol": 5,
        "blob": base64.urlsafe_b64encode(blob).decode(),
        "digest": hashlib.sha256(blob).hexdigest(),
        **changes,
    }
    return {
        "metric_type": "m",
        "outputs": [{"name": "p", "value_json_schema": {"type": "boolean"}}],
        "payload": payload,
    }


def order(*metrics: Any, **spec: Any) -> dict[str, Any]:
    return {"spec": {"metrics": list(metrics), "dataset": ROWS, **spec}}


def ended(client: httpx.Client, made: httpx.Response) -> dict[str, Any]:
    assert made.status_code == 201, made.text
    until = time.monotonic() + 120
    while True:
        status: dict[str, Any] = client.get(f"{JOBS}/{made.json()['name']}/status").json()
        if status["status"] in ("completed", "error", "cancelled"):
            return status
        assert time.monotonic() < until, status
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (order(), "spec.metrics"),
        (order(inline(EXACT, "exact-match"), dataset=[]), "spec.dataset"),
        (order(inline(EXACT, "exact-match"), colour="red"), "spec.colour"),
        (order(inline(EXACT, "p", "p")), "spec.metrics[0].outputs"),
        (order(inline({"type": "remote", "url": "http://x"}, "p")), "spec.metrics[0].payload.metric.type"),
        (order(pickled(digest="0" * 64)), "spec.metrics[0].payload.digest"),
        (order(pickled(blob=b"x" * ((10 << 20) + 1))), "spec.metrics[0].payload.blob"),
        (order({**pickled(), "payload": {**pickled()["payload"], "blob": "%%%"}}), "spec.metrics[0].payload.blob"),
        (order(pickled(python_version="2.7.18")), "spec.metrics[0].payload.python_version"),
        (order(pickled(pickle_protocol=99)), "spec.metrics[0].payload.pickle_protocol"),
        (order(inline(EXACT, "p"), prompt_template="{{item.gold}}"), "spec.prompt_template"),
        (order(inline(EXACT, "p"), target={"url": "http://127.0.0.1:9/v1", "name": "m"}), "spec.prompt_template"),
        (order(inline(EXACT, "p"), field_mapping={"custom": {"output": "x"}}), "spec.field_mapping"),
    ],
)
def test_an_order_that_cannot_be_taken_is_refused_by_name(server: Server, body: dict[str, Any], field: str) -> None:
    before = len(server.client.get("/v1/jobs").json())
    refused = server.client.post(JOBS, json=body)
    assert refused.status_code == 422, refused.text
    assert [problem["field"] for problem in refused.json()["errors"]] == [field]
    assert len(server.client.get("/v1/jobs").json()) == before


def test_a_bundle_for_a_python_that_is_not_here_names_it(server: Server) -> None:
    refused = server.client.post(JOBS, json=order(pickled(python_version="3.99.1")))
    assert refused.status_code == 422
    assert "pickled with Python 3.99" in refused.json()["detail"]
    assert "uv python install 3.99" in refused.json()["detail"]


@pytest.mark.long
def test_a_damaged_pickle_fails_in_the_sandbox_alone(server: Server) -> None:
    own = ".".join(server.client.get("/v1/info").json()["runtimes"]["python"].split(".")[:2])
    status = ended(server.client, server.client.post(JOBS, json=order(pickled(python_version=f"{own}.0"))))
    assert status["status"] == "error"
    assert "the bundle cannot be opened: UnpicklingError" in status["error_details"]["message"]


class Hostile:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


def test_a_hostile_pickle_does_what_it_does_in_the_sandbox_alone(server: Server, tmp_path: Path) -> None:
    own = server.client.get("/v1/info").json()["runtimes"]["python"]
    bundle = pickled(pickle.dumps(Hostile(tmp_path / "made")), python_version=f"{own}.0")
    assert server.client.post("/apis/evaluator/v2/workspaces/default/metrics/hostile", json=bundle).status_code == 201
    status = ended(server.client, server.client.post(JOBS, json=order("default/hostile")))
    assert "the bundle cannot be opened: FileNotFoundError" in status["error_details"]["message"]
    assert not (tmp_path / "made").exists()
    pickle.loads(pickle.dumps(Hostile(tmp_path / "made")))
    assert (tmp_path / "made").exists(), "this pickle must do harm where it is opened; otherwise the test shows nothing"


@pytest.mark.long
def test_a_job_outlives_its_host(tmp_path: Path) -> None:
    environment = FORKED | {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path}/host.db"}
    body = order(inline(EXACT, "exact-match"), dataset=ROWS * 100, field_mapping={"output": "answer"})
    with Server(log=tmp_path / "log", environment=environment) as first:
        made = first.client.post(JOBS, json=body)
        first.kill()
    with Server(log=tmp_path / "again", environment=environment) as second:
        assert ended(second.client, made)["status"] == "completed"
        results = f"{JOBS}/{made.json()['name']}/results"
        (score,) = second.client.get(f"{results}/aggregate-scores/download").json()["scores"]
        assert score["count"] == 200
        assert len(second.client.get(f"{results}/row-scores/download").text.splitlines()) == 200


@pytest.mark.long
def test_a_bundle_runs_on_the_python_that_pickled_it(server: Server) -> None:
    info = server.client.get("/v1/info").json()
    other = next(one for one in info["pythons"] if one != info["runtimes"]["python"])
    evaluator = {"code": PICKLER, "python": other, "contract": "evaluate"}
    blob = base64.b64decode(server.client.post("/v1/evaluate", json={"evaluator": evaluator}).json()["value"]["reason"])
    bundle = {**pickled(blob, python_version=f"{other}.0"), "metric_type": "minor"}
    made = server.client.post(JOBS, json=order(bundle))
    assert ended(server.client, made)["status"] == "completed"
    rows = server.client.get(f"{JOBS}/{made.json()['name']}/results/row-scores/download").text
    assert json.loads(rows.splitlines()[0])["metrics"] == {"minor": [{"name": "p", "value": int(other[2:])}]}


@pytest.mark.long
def test_metrics_by_reference_and_corpus_scores(server: Server) -> None:
    kept = server.client.post("/apis/evaluator/v2/workspaces/default/metrics/ours", json=inline(BLEU, "sentence"))
    assert kept.status_code == 201, kept.text
    body = order("default/ours", inline(EXACT, "exact-match"), field_mapping={"output": "answer"})
    made = server.client.post(JOBS, json={**body, "name": "both", "custom_fields": {"ticket": 7}})
    assert ended(server.client, made)["status"] == "completed"
    job = server.client.get(f"{JOBS}/both").json()
    assert job["custom_fields"] == {"ticket": 7}
    assert [one["metric_type"] for one in job["spec"]["metrics"]] == ["bleu", "exact-match"]
    scores = server.client.get(f"{JOBS}/both/results/aggregate-scores/download").json()["scores"]
    assert [(one["name"], one["count"]) for one in scores] == [
        ("bleu.sentence", 2), ("bleu.corpus", 1), ("exact-match.exact-match", 2),
    ]  # fmt: skip
    lines = server.client.get(f"{JOBS}/both/results/row-scores/download?limit=1").text.splitlines()
    assert len(lines) == 1
    archive = server.client.get(f"{JOBS}/both/results/artifacts/download").content
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert tar.getnames() == ["aggregate-scores.json", "row-scores.jsonl"]
    assert server.client.post(JOBS, json={**body, "name": "both"}).status_code == 409
    assert server.client.post(f"{JOBS}/both/cancel").status_code == 409
    assert server.client.get(f"{JOBS}/both/results/nonsense/download").status_code == 404
    assert server.client.get("/apis/jobs/v2/workspaces/default/jobs/both").json()["id"] == job["id"]


@pytest.mark.long
def test_rows_that_fail_are_nan_where_the_job_says_so(server: Server) -> None:
    params = {"ignore_request_failure": True}
    body = order(inline(EXACT, "exact-match"), dataset=[{"gold": "a", "output": "a"}, {"output": "b"}], params=params)
    made = server.client.post(JOBS, json=body)
    assert ended(server.client, made)["status"] == "completed"
    results = f"{JOBS}/{made.json()['name']}/results"
    (score,) = server.client.get(f"{results}/aggregate-scores/download").json()["scores"]
    assert (score["count"], score["nan_count"], score["mean"]) == (1, 1, 1.0)
    rows = [line for line in server.client.get(f"{results}/row-scores/download").text.splitlines() if '"NaN"' in line]
    assert len(rows) == 1
    assert "gold" in rows[0]


@pytest.mark.long
def test_files_stay_in_their_fileset(server: Server) -> None:
    assert server.client.post(FILES, json={"name": "odd"}).status_code == 201
    for path in ("..%2F..%2Fetc", "a%2F..%2Fb", "a%2F%2Fb", "a%23b"):
        assert server.client.put(f"{FILES}/odd/-/{path}", content=b"x").status_code == 422, path
    assert server.client.put(f"{FILES}/odd/-/bad.jsonl", content=b'{"a": 1}\n[1]\n').status_code == 200
    assert server.client.put(f"{FILES}/odd/-/rows.exe", content=b"x").status_code == 200
    for reference, said in (
        ("default/odd#bad.jsonl", "line 2 of bad.jsonl"),
        ("default/odd#rows.exe", "cannot tell the format"),
        ("default/odd#none.csv", "has no file 'none.csv'; it has bad.jsonl, rows.exe"),
        ("default/even", "there is no fileset even"),
    ):
        refused = server.client.post(JOBS, json=order(inline(EXACT, "exact-match"), dataset=reference))
        assert refused.status_code in (404, 422)
        assert said in refused.json()["detail"]
    assert server.client.delete(f"{FILES}/odd/-/rows.exe").status_code == 200
    assert server.client.get(f"{FILES}/odd/-/rows.exe").status_code == 404
    assert server.client.patch(f"{FILES}/odd", json={"description": "new"}).json()["description"] == "new"
    assert server.client.delete(f"{FILES}/odd").status_code == 200
    assert server.client.get(f"{FILES}/odd/files").status_code == 404


def test_models_hold_no_keys_and_unknown_ones_are_named(server: Server) -> None:
    refused = server.client.post(f"{MODELS}/models", json={"name": "m", "api_endpoint": {"api_key": "sk-1"}})
    assert refused.status_code == 422
    assert "sk-1" not in refused.text
    assert server.client.post(f"{MODELS}/models", json={"name": "nowhere"}).status_code == 201
    for name, said in (("nowhere", "does not know the URL"), ("unknown", "EVALUATOR_HOST_MODELS")):
        body = order(inline(EXACT, "exact-match"), target=f"default/{name}", prompt_template="{{item.gold}}")
        assert said in server.client.post(JOBS, json=body).json()["detail"]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "path",
    [METRICS, JOBS, FILES, f"{MODELS}/models", f"{MODELS}/providers", WORKSPACES, SECRETS],
)
def test_a_filter_is_taken_or_refused_and_never_left_out_of_account(path: str, server: Server) -> None:
    for name in ("filter[name]", "filter[created_at][$lte]"):
        none = server.client.get(path, params={name: "1999-12-31"}).json()
        assert (none["data"], none["pagination"]["total_results"]) == ([], 0)
    for name in ("filter", "filter[colour]", "filter[created_at][$gte]"):
        refused = server.client.get(path, params={name: "x"})
        assert refused.status_code == 422, refused.text
        assert refused.json()["errors"][0]["field"] == name
    assert server.client.get(path, params={"page_size": 1}).status_code == 200


def test_namespaces_of_one_key_are_not_anothers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/host.db"
    one, other = [{"Authorization": f"Bearer {make_key(name, name, url=url)}"} for name in ("one", "other")]
    with Server(log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": url}) as server:
        workspaces, fileset = "/apis/entities/v2/workspaces", "/apis/files/v2/workspaces/mine/filesets"
        assert server.client.post(workspaces, json={"name": "mine"}).status_code == 401
        assert server.client.post(workspaces, json={"name": "mine"}, headers=one).status_code == 201
        assert server.client.post(fileset, json={"name": "f"}, headers=one).status_code == 201
        assert server.client.get(f"{fileset}/f", headers=other).status_code == 404
        assert server.client.post(fileset, json={"name": "f"}, headers=other).status_code == 404
        assert [found["name"] for found in server.client.get(workspaces, headers=other).json()["data"]] == ["default"]
        assert server.client.delete(f"{workspaces}/mine", headers=one).status_code == 409
        assert server.client.delete(f"{fileset}/f", headers=one).status_code == 200
        assert server.client.delete(f"{workspaces}/mine", headers=one).status_code == 204


def test_a_short_secret_is_taken_from_nvidias_client_and_from_nobody_else(server: Server) -> None:
    made = server.client.post(SECRETS, json={"name": "brief", "value": "v"})
    assert made.status_code == 201, made.text
    assert server.client.put("/v1/secrets/brief", json={"value": "v"}).status_code == 422
    assert server.client.delete(f"{SECRETS}/brief").status_code == 204
