"""With `packages: "auto"` over HTTP, the host stores the evaluator with exact pins."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator
from tests.server import Server

CODE = "import emoji\ndef evaluate(inputs, outputs, trace):\n    return emoji.emoji_count(outputs or '') + 1\n"
AUTO = {"code": CODE, "packages": "auto"}
PIN = re.compile(r"emoji==\d[\d.]+")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


def post(server: Server, path: str, **body: Any) -> Any:
    answer = server.client.post(path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


def test_calls_are_scored_with_what_the_code_imports(server: Server) -> None:
    result = post(server, "/v1/evaluate", evaluator=AUTO, outputs="a")
    assert (result["score"], result["environment"]["packages"][0]["name"]) == (1, "emoji")
    assert [note["code"] for note in result["warnings"]] == ["packages_chosen"]
    batch = post(server, "/v1/evaluate/batch", evaluator=AUTO, rows=[{"outputs": "a"}, {"outputs": "b"}])
    assert [one["score"] for one in batch["results"]] == [1, 1]
    checked = post(server, "/v1/check", evaluator=AUTO)
    assert (checked["ok"], checked["missing_imports"]) == (True, [])
    among = post(server, "/v1/evaluate", evaluator={"code": CODE, "packages": ["auto", "six==1.17.0"]}, outputs="a")
    assert {one["name"] for one in among["environment"]["packages"] if one["requested"]} == {"emoji", "six"}


def test_a_stored_evaluator_has_exact_pins(server: Server) -> None:
    (pin,) = post(server, "/v1/evaluators", name="emojis", **AUTO)["evaluator"]["packages"]
    assert PIN.fullmatch(pin)
    result = post(server, "/v1/evaluate", evaluator="emojis", outputs="a")
    assert (result["score"], result["warnings"]) == (1, [])
    again = server.client.put("/v1/evaluators/emojis", json=AUTO).json()
    assert (again["version"], again["evaluator"]["packages"]) == (1, [pin])


@pytest.mark.long
def test_a_job_keeps_the_pins_of_its_start(server: Server) -> None:
    job = post(server, "/v1/jobs", evaluators=[AUTO], dataset={"rows": [{"outputs": "a"}, {"outputs": "b"}]})
    until = time.monotonic() + 120
    while job["status"] not in {"completed", "failed", "stopped"} and time.monotonic() < until:
        time.sleep(0.3)
        job = server.client.get(f"/v1/jobs/{job['id']}").json()
    assert job["status"] == "completed", job
    (statistics,) = server.client.get(f"/v1/jobs/{job['id']}/results").json()["evaluators"]
    assert statistics["scored"] == 2


def test_the_client_sends_it(server: Server) -> None:
    with Client(str(server.client.base_url)) as client:
        assert client.evaluate(Evaluator(CODE, packages=("auto",)), outputs="a").score == 1
