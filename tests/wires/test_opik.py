"""Opik's API (wire `opik`): requests as Opik's backend sends them, and the error messages that Opik's tests check."""

import http.server
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.dialects.cases import ANY
from tests.keyed import bearer
from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.wired import ENDLESS, SECRET, cases_of, sent, wired

pytestmark = pytest.mark.engine

PATH = "/wires/opik/v1/private/evaluators/python"
METRIC = """
from typing import Any
from opik.evaluation.metrics import base_metric, score_result

class Mine(base_metric.BaseMetric):
    def __init__(self, name: str = "mine"):
        super().__init__(name=name, track=False){init}

    def score(self, output: Any = None, reference: Any = None, **ignored: Any):
        {body}
"""
EQUALS = METRIC.format(
    init="", body="return score_result.ScoreResult(value=float(output == reference), name=self.name)"
)
DATA = {"output": "abc", "reference": "abc"}


def scoring(body: str, init: str = "") -> str:
    return METRIC.format(init=f"\n        {init}" if init else "", body=body)


def test_every_case_ends_as_by_opik_s_executor(host: Server) -> None:
    cases = [
        case
        for case in cases_of("opik")
        if "data" in (case.row.variables or {}) and not case.settings.config and case.settings.entry is None
    ]
    assert len(cases) > 20
    with ThreadPoolExecutor(8) as pool:
        ask = lambda case: host.client.post(PATH, json={"code": sent(case), **case.row.variables})  # noqa: E731
        answers = list(pool.map(ask, cases))
    found = []
    for case, answer in zip(cases, answers, strict=True):
        told = (answer.status_code, answer.json().get("scores"))
        if told != ((400, None) if case.status == "failed" else (200, told[1] if case.native is ANY else case.native)):
            found.append(f"{case.id}: {told}, expected {case.status}, {case.native}: {answer.text}")
    assert found == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"data": DATA}, "Field 'code' is missing in the request"),
        ({"code": 3, "data": DATA}, "Field 'code' must be a string"),
        ({"code": EQUALS}, "Field 'data' is missing in the request"),
        (
            {"code": "from typing import Any\n\nclass Mine:\n    pass\n", "data": DATA},
            "Field 'code' in the request doesn't contain a subclass implementation of 'opik.evaluation.metrics.BaseMetric'",
        ),
        (
            {
                "code": scoring(
                    "R = score_result.ScoreResult; return [R('a\\n', None), R('b', 0.0, scoring_failed=True)]"
                ),
                "data": DATA,
            },
            "The provided 'code' field returned no usable score: 'a ' returned no value, 'b' reported the scoring as failed",
        ),
        (
            {"code": scoring("return 3"), "data": DATA},
            "The provided 'code' field didn't return any 'opik.evaluation.metrics.ScoreResult'",
        ),
    ],
)
def test_errors_have_the_pinned_texts(client: httpx.Client, body: dict[str, Any], text: str) -> None:
    answer = client.post(PATH, json=body)
    assert (answer.status_code, answer.json()) == (400, {"error": f"400 Bad Request: {text}"})


@pytest.mark.long
def test_errors_of_the_code_have_its_traceback(client: httpx.Client) -> None:
    def fails(code: str) -> str:
        answer = client.post(PATH, json={"code": code, "data": DATA})
        assert answer.status_code == 400, answer.text
        return str(answer.json()["error"])

    wrong = fails("\nfrom typing import\n\nclass Mine:\n    pass\n")
    assert wrong.startswith("400 Bad Request: Field 'code' contains invalid Python code:   File \"<string>\", line 2\n")
    assert "SyntaxError: " in wrong
    missing = fails("import nobodys\n" + scoring("return nobodys.score(output)"))
    assert "contains invalid Python code" in missing
    assert "File \"<string>\", line 1, in <module>\nModuleNotFoundError: No module named 'nobodys'" in missing.replace(
        "    import nobodys\n", ""
    )
    for raised in (
        fails(scoring('raise Exception("in score")')),
        fails(scoring("pass", 'raise Exception("in score")')),
    ):
        assert raised.startswith(
            "400 Bad Request: The provided 'code' and 'data' fields can't be evaluated:   File \"<string>\", line "
        )
        assert raised.endswith("Exception: in score")


def test_metrics_get_spans_and_threads(client: httpx.Client) -> None:
    spans = [{"name": "llm", "output": {"n": 1}}]
    metric = scoring("return score_result.ScoreResult(value=len(ignored['spans']), name='n', reason=str(output))")
    answer = client.post(PATH, json={"code": metric, "data": {"output": {"deep": [1, None]}, "spans": spans}})
    assert answer.json()["scores"][0]["value"] == 1
    assert answer.json()["scores"][0]["reason"] == "{'deep': [1, None]}"
    thread = """
from opik.evaluation.metrics import score_result
from opik.evaluation.metrics.conversation import conversation_thread_metric

class Turns(conversation_thread_metric.ConversationThreadMetric):
    def score(self, conversation, **ignored):
        return score_result.ScoreResult(value=len(conversation), name="turns")
"""
    turns = [{"role": "user", "content": {"q": "hi"}}, {"role": "assistant", "content": "hello"}]
    answer = client.post(PATH, json={"code": thread, "data": turns, "type": "trace_thread"})
    assert answer.json()["scores"][0]["value"] == 2


def test_a_body_that_is_not_a_request_is_answered_as_by_flask(client: httpx.Client) -> None:
    said = "400 Bad Request: The browser (or proxy) sent a request that this server could not understand."
    assert client.post(PATH, content=b"null").json() == {"error": said}
    assert client.post(PATH, content=b"{").json() == {"error": said}
    assert (client.options(PATH).status_code, client.options(PATH).content) == (200, b"")
    assert client.get(PATH).status_code in (404, 405)
    assert client.get("/wires/opik/healthcheck").text == "OK"
    large = client.post(PATH, content=b"x" * (17 << 20))
    assert (large.status_code, large.json()["error"][:28]) == (413, "413 Request Entity Too Large")


@pytest.mark.long
def test_wrong_keys_and_endless_loops_are_refused(keyed: Keyed) -> None:
    url = f"{keyed.url}/wires/opik/key/{SECRET.replace(' ', '%20')}/v1/private/evaluators/python"
    assert httpx.post(url, json={"code": EQUALS, "data": DATA}).json()["scores"][0]["value"] == 1
    endless = httpx.post(url, json={"code": scoring(ENDLESS), "data": DATA})
    assert (endless.status_code, endless.json()["error"][:19]) == (504, "504 Gateway Timeout")
    refused = httpx.post(f"{keyed.url}{PATH}", json={"code": EQUALS, "data": DATA}, headers=bearer("eh_no"))
    assert (refused.status_code, refused.json()["error"][:16]) == (401, "401 Unauthorized")
    assert httpx.get(f"{keyed.url}/wires/opik/healthcheck").status_code == 200


class _Backend(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"path": self.path, "key": self.headers.get("Authorization")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def upstream() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Backend) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.long
def test_other_routes_go_upstream_without_the_key(client: httpx.Client, upstream: str, tmp_path: Any) -> None:
    path = "/wires/opik/v1/private/evaluators/common-metrics"
    assert (
        client.get(path)
        .json()["error"]
        .startswith("404 Not Found: /v1/private/evaluators/common-metrics is not a path of this host")
    )
    with wired(tmp_path, "opik", opik={"upstream": upstream}) as server:
        answer = server.client.get(f"{path}?all=1", headers=bearer("mine"))
        assert answer.json() == {"path": "/v1/private/evaluators/common-metrics?all=1", "key": None}
        # a browser that follows a link to this path must not run scripts of the other server as pages of this host
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert server.client.post(PATH, json={"code": EQUALS, "data": DATA}).json()["scores"]
