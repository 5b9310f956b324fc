"""A default limit above the operator's ceiling is lowered to the ceiling; a caller's limit above it is refused."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Limits
from tests.keyed import eventually
from tests.server import Server, new_home

CODE = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
ENDLESS = "def evaluate(inputs, outputs, trace):\n    while True:\n        pass\n"
LOW = {"timeout_s": 2.0, "memory_mb": 128, "processes": 16, "disk_mb": 32, "log_kb": 8, "result_kb": 64}
ROW = {"inputs": {}, "outputs": "a"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("ceilings")
    ceilings = {f"EVALUATOR_HOST_MAX_{name.upper()}": str(most) for name, most in LOW.items()}
    environment = {**ceilings, "EVALUATOR_HOST_WIRES": "openai"}
    with Server(data_dir=new_home(folder), log=folder / "log", environment=environment) as server:
        yield server


def evaluate(host: Server, evaluator: Any) -> Any:
    return host.client.post("/v1/evaluate", json={"evaluator": evaluator, **ROW}, timeout=60).json()


@pytest.mark.long
def test_the_defaults_that_the_host_names_are_at_most_its_ceilings(host: Server) -> None:
    info = host.client.get("/v1/info").json()
    assert info["default_limits"] == info["limit_ceilings"] == LOW


def test_code_without_limits_runs_within_the_ceilings(host: Server) -> None:
    assert evaluate(host, {"code": CODE})["score"] == 1
    assert evaluate(host, {"code": CODE, "limits": {"memory_mb": 64}})["score"] == 1
    late = evaluate(host, {"code": ENDLESS})
    assert (late["error"]["code"], "2 s" in late["error"]["message"]) == ("timeout", True)


def test_a_client_that_sends_every_field_gets_the_same(host: Server) -> None:
    assert evaluate(host, {"code": CODE, "limits": asdict(Limits())})["score"] == 1
    with Client(host.url) as client:
        assert client.evaluate(Evaluator(CODE), inputs={}, outputs="a").score == 1


@pytest.mark.long
def test_stored_evaluators_and_jobs_without_limits_run_and_keep_their_digest(host: Server) -> None:
    made = host.client.post("/v1/evaluators", json={"name": "lowered", "code": CODE}).json()
    result = evaluate(host, "lowered")
    assert (result["score"], result["evaluator"]["digest"]) == (1, made["digest"]), made
    for evaluator in ("lowered", {"code": CODE}):
        job = host.client.post("/v1/jobs", json={"evaluators": [evaluator], "dataset": {"rows": [ROW]}}).json()
        eventually(
            lambda job=job: host.client.get(f"/v1/jobs/{job['id']}").json()["status"] == "completed", within_s=60
        )


def test_programs_and_wires_run_within_the_ceilings(host: Server) -> None:
    assert host.client.post("/v1/run", json={"code": "print(1)"}, timeout=60).json()["stdout"] == "1\n"
    grader = {"type": "python", "name": "g", "source": "def grade(sample, item):\n    return 1.0\n"}
    body = {"grader": grader, "model_sample": "a", "item": {}}
    answer = host.client.post("/wires/openai/v1/fine_tuning/alpha/graders/run", json=body, timeout=60).json()
    assert answer["reward"] == 1, answer


@pytest.mark.parametrize(("name", "asked"), [(name, most + 1) for name, most in LOW.items()])
def test_a_limit_that_is_set_over_the_ceiling_is_refused(host: Server, name: str, asked: float) -> None:
    answer = evaluate(host, {"code": CODE, "limits": {name: asked}})
    assert [one["field"] for one in answer["errors"]] == [f"evaluator.limits.{name}"]
    assert f"ask for at most {LOW[name]:g}" in answer["errors"][0]["hint"]
