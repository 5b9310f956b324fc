"""Webhooks (wire `webhook`): promptfoo, Agenta, Azure AI Foundry and Maxim call stored evaluators as endpoints."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.keyed import bearer
from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.real_clients import run_node
from tests.wires.wired import ENDLESS, SECRET

pytestmark = pytest.mark.engine

EXACT = "def evaluate(inputs, outputs, trace):\n    return {'score': float(outputs == inputs['correct_answer']), 'reason': 'compared'}\n"
HALF = "def evaluate(inputs, outputs, trace):\n    return 0.5\n"
RATING = "def evaluate(inputs, outputs, trace):\n    return {'score': 2, 'reason': '2 of 5'}\n"
LABEL = "def evaluate(inputs, outputs, trace):\n    return 'incorrect'\n"
METRICS = "def evaluate(inputs, outputs, trace):\n    return {'accuracy': 0.1}\n"
SKIPS = "def evaluate(inputs, outputs, trace):\n    return {'score': None}\n"
RAISES = "def evaluate(inputs, outputs, trace):\n    return inputs['none']\n"
LOOP = f"def evaluate(inputs, outputs, trace):\n    {ENDLESS}\n"
ASSERT = "def get_assert(output, context):\n    return {'pass': output == context['vars']['correct_answer'], 'score': 0.25, 'reason': context['prompt']}\n"
STORED = {
    "exact": EXACT,
    "half": HALF,
    "rating": RATING,
    "label": LABEL,
    "metrics": METRICS,
    "skips": SKIPS,
    "raises": RAISES,
    "loop": LOOP,
    "assert": ASSERT,
}
PROMPTFOO = {"output": "Paris", "context": {"prompt": "p", "vars": {"correct_answer": "Paris"}}}


def store(client: httpx.Client, **code: str) -> None:
    for name, text in code.items():
        contract = {"contract": "promptfoo"} if name == "assert" else {}
        client.post("/v1/evaluators", json={"name": name, "code": text, **contract}).raise_for_status()


@pytest.fixture(scope="module")
def hooks(host: Server) -> Iterator[httpx.Client]:
    """An HTTP client for a host on which the evaluators are stored."""
    store(host.client, **STORED)
    with httpx.Client(base_url=f"{host.url}/hooks", timeout=30) as client:
        yield client


def test_each_caller_s_row_is_read(hooks: httpx.Client) -> None:
    def score(name: str, body: Any) -> Any:
        return hooks.post(f"/{name}", json=body).json()

    whole = {"pass": True, "success": True, "score": 1.0, "reason": "compared", "metrics": {"score": 1.0}}
    assert score("exact", PROMPTFOO) == whole
    # this is the body that Agenta sends
    assert score("exact@1", {"inputs": {"correct_answer": "Paris"}, "output": "Paris"}) == whole
    assert score("exact", {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris", "trace": None}) == whole
    # these are the bodies that Azure and Maxim send
    assert score("exact", {"query": "q", "response": "Paris", "correct_answer": "Paris"}) == whole
    assert score("exact", {"query": "q", "response": "Rome", "correct_answer": "Paris"})["pass"] is False
    assert score("assert", PROMPTFOO) == {
        "pass": True,
        "success": True,
        "score": 0.25,
        "reason": "p",
        "metrics": {"score": 0.25},
    }
    told = "the evaluator has no threshold, so a score of at least 0.5 passes"
    half, rating = score("half", {"output": 1}), score("rating", {"output": 1})
    assert (half["pass"], half["reason"]) == (True, told)
    assert (rating["pass"], rating["reason"]) == (True, f"2 of 5 ({told})")


def test_only_a_skipped_row_passes_without_a_score(hooks: httpx.Client) -> None:
    found = {name: hooks.post(f"/{name}", json=PROMPTFOO).json() for name in ("label", "metrics", "skips")}
    assert {name: one["pass"] for name, one in found.items()} == {"label": False, "metrics": False, "skips": True}
    assert (found["label"]["label"], found["metrics"]["metrics"]) == ("incorrect", {"accuracy": 0.1})
    assert "score is null" in found["metrics"]["reason"]
    assert "the row is skipped" in found["skips"]["reason"]


def test_failures_are_results_for_promptfoo_and_statuses_for_others(hooks: httpx.Client) -> None:
    failed = hooks.post("/raises", json=PROMPTFOO)
    assert (failed.status_code, failed.json()["pass"], failed.json()["score"]) == (200, False, 0)
    assert failed.json()["reason"] == "user_exception: KeyError: 'none' (line 2)"
    other = hooks.post("/raises", json={"inputs": {}, "output": "x"})
    assert (other.status_code, other.json()) == (422, {"error": "KeyError: 'none' (line 2)", "code": "user_exception"})
    for answer, status, code in (
        (hooks.post("/none", json=PROMPTFOO), 404, "not_found"),
        (hooks.post("/exact@7", json=PROMPTFOO), 404, "not_found"),
        (hooks.post("/exact", content=b"x"), 422, "invalid_request"),
        (hooks.post("/exact", json={"inputs": {}, "trace": 3}), 422, "invalid_request"),
        (hooks.post("/exact", content=b"x" * (9 << 20)), 413, "too_large"),
        (hooks.put("/exact", json={}), 405, "invalid_request"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert set(answer.json()) == {"error", "code"}


def test_the_key_comes_by_any_of_four_ways(keyed: Keyed) -> None:
    with httpx.Client(base_url=keyed.url, headers=bearer(keyed.key), timeout=30) as client:
        store(client, exact=EXACT)
    url = f"{keyed.url}/hooks/exact"
    for answer in (
        httpx.post(url, json=PROMPTFOO, headers=bearer(keyed.key)),
        httpx.post(url, json=PROMPTFOO, headers={"api-key": keyed.key}),
        httpx.post(url, json=PROMPTFOO, params={"key": keyed.key}),
        httpx.post(f"{keyed.url}/hooks/key/{keyed.key}/exact", json=PROMPTFOO),
    ):
        assert answer.json()["pass"] is True, answer.text
    assert httpx.post(url, json=PROMPTFOO, params={"key": "eh_no"}).json()["code"] == "unauthorized"
    # the key belongs to workspace `default`
    assert httpx.post(url, json=PROMPTFOO, headers=bearer(SECRET)).status_code == 404


@pytest.mark.long
def test_a_loop_ends_before_promptfoo_s_clock(hooks: httpx.Client) -> None:
    assert hooks.post("/loop", json=PROMPTFOO).json()["reason"].startswith("timeout: ")
    assert hooks.post("/loop", json={"inputs": {}, "output": ""}).status_code == 504


RUN = """
import promptfoo from "promptfoo";
const found = [];
for (const [type, value, output] of JSON.parse(process.argv[2])) {
  const test = { vars: { correct_answer: "Paris" } };
  const { pass, score, reason } = await promptfoo.assertions.runAssertion({ assertion: { type, value }, test, prompt: "p", providerResponse: { output } });
  found.push([pass, score, reason]);
}
console.log(JSON.stringify(found));
process.exit(0);
"""


@pytest.mark.differential
def test_promptfoo_s_own_assertion_gets_the_score(hooks: httpx.Client, host: Server, tmp_path: Any) -> None:
    url = f"{host.url}/hooks"
    asked = [
        ["webhook", f"{url}/exact", "Paris"],
        ["webhook", f"{url}/exact", "Rome"],
        ["not-webhook", f"{url}/exact", "Rome"],
        ["webhook", f"{url}/assert", "Paris"],
        ["webhook", f"{url}/raises", "Paris"],
        ["webhook", f"{url}/none", "Paris"],
    ]
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "HOME": str(tmp_path)}
    right, wrong, inverted, native, raised, missing = run_node("promptfoo", RUN, json.dumps(asked), **quiet)
    assert right == [True, 1, "compared"]
    assert wrong[:2] == [False, 0]
    assert inverted[:2] == [True, 1]
    assert native == [True, 0.25, "p"]
    assert raised == [False, 0, "user_exception: KeyError: 'none' (line 2)"]
    assert missing[0] is False
    assert "404" in missing[2] or "not_found" in missing[2] or "Webhook error" in missing[2]
