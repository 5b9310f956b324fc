"""Each wire refuses wrong keys, large bodies, endless loops and calls beyond the host's capacity, with responses in
the platform's own format.

After a wrong key or a large body, the status makes callers give up; if the host is full, the status makes them try
again (docs/wires, *What comes back*).
"""

import hmac
import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.platform.wires.table import wires
from tests.keyed import bearer
from tests.server import Server
from tests.wires.conftest import Keyed
from tests.wires.wired import ENDLESS, SECRET, wired

pytestmark = pytest.mark.engine

HOLDS = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(%d)\n    return 1.0\n"
JSON = "content-type: application/json\r\ncontent-length"
INVOKE = "/wires/langfuse/2015-03-31/functions/code-based-eval-executor-python/invocations"
DISPATCH = {
    "scope": {"organizationId": "o", "projectId": "p", "evaluatorId": "e"},
    "runtime": {"language": "PYTHON"},
    "execution": {"jobExecutionId": "j"},
    "code": {"source": "def evaluate(ctx):\n    return {'scores': []}\n"},
    "payload": {"observation": {}},
}
OPIK = {"code": "from opik.evaluation.metrics import base_metric\nclass M(base_metric.BaseMetric): pass\n", "data": {}}
OPIK_METRIC = OPIK["code"].replace(" pass\n", "\n    def score(self, **given):\n")
GRADER = {"grader": {"type": "python", "name": "g", "source": "def grade(sample, item):\n    return 1.0\n"}}
VELLUM = {"code": "def main():\n    return 1\n", "runtime": "PYTHON_3_11_6", "input_values": [], "output_type": "JSON"}
LAMINAR = {"definition": {"function_code": "def main(output):\n    return 1\n"}, "input": 1}
COZE = {"language": "python", "code": "print(1)", "timeout": 5000}


def lambda_s(answer: httpx.Response) -> bool:
    return answer.status_code == 429 and answer.headers["x-amzn-errortype"] == "TooManyRequestsException"


CALLS: dict[str, tuple[str, Any, Callable[[httpx.Response], bool]]] = {
    "langfuse": ("/wires/langfuse", DISPATCH,
                 lambda got: got.status_code == 429 and got.json()["error"]["code"] == "EXTERNAL_INVOCATION_ERROR"),
    "langfuse as Lambda": (INVOKE, DISPATCH, lambda_s),
    "webhook": ("/hooks/one", {"inputs": {}, "output": "x"},
                lambda got: got.status_code in (429, 503) and "retry-after" in got.headers and "code" in got.json()),
    "opik": ("/wires/opik/v1/private/evaluators/python", OPIK,
             lambda got: got.status_code == 503 and got.json()["error"].startswith("503 ")),
    "openai": ("/wires/openai/v1/fine_tuning/alpha/graders/run", {**GRADER, "model_sample": "", "item": {}},
               lambda got: got.status_code == 429 and got.json()["error"]["code"] == "rate_limit_exceeded"),
    "vellum": ("/wires/vellum/v1/execute-code", VELLUM, lambda got: got.status_code == 429 and "message" in got.json()),
    "coze": ("/wires/coze/run_code", COZE, lambda got: got.status_code == 503 and set(got.json()) == {"error"}),
    "laminar": ("/wires/laminar", LAMINAR, lambda got: got.status_code in (429, 503) and set(got.json()) == {"error"}),
    "daytona": ("", {"code": "print(1)"},
                lambda got: (got.status_code, set(got.json())) == (429, {"statusCode", "message", "error"})),
}  # fmt: skip


def metrics(host: Server) -> set[str]:
    return set(host.client.get("/metrics").text.splitlines())


@pytest.fixture
def full(saturated: Server) -> Iterator[Server]:
    """A host with a full queue: its only sandbox is busy, and another call waits for it."""
    body = {"name": "one", "code": "def evaluate(inputs, outputs, trace):\n    return 1.0\n"}
    saturated.client.post("/v1/evaluators", json=body).raise_for_status()
    with ExitStack() as held:
        for seconds in (25, 0):
            connection = held.enter_context(socket.create_connection(("127.0.0.1", saturated.port)))
            call = json.dumps({"evaluator": {"code": HOLDS % seconds, "limits": {"timeout_s": 30}}})
            connection.sendall(
                f"POST /v1/evaluate HTTP/1.1\r\nhost: localhost\r\n{JSON}: {len(call)}\r\n\r\n{call}".encode()
            )
            until = time.monotonic() + 20
            waiting = 1.0 if seconds == 0 else 0.0  # do not wait if the first call already has its sandbox
            expected = {f"evaluator_host_queue {waiting}", "evaluator_host_sandbox_memory_mb 256.0"}
            while not expected <= metrics(saturated):
                assert time.monotonic() < until
                time.sleep(0.02)
        yield saturated


def test_a_saturated_host_is_reported_in_each_platform_s_own_terms(full: Server) -> None:
    assert {name.split(" ")[0] for name in CALLS} == set(wires())
    sandbox = full.client.post("/wires/daytona/api/sandbox", json={}).json()
    script = f"/wires/daytona/toolbox/{sandbox['id']}/process/code-run"
    with ThreadPoolExecutor(len(CALLS)) as pool:
        asked = {
            name: pool.submit(full.client.post, path or script, json=body) for name, (path, body, _) in CALLS.items()
        }
    answers = {name: answer.result() for name, answer in asked.items()}
    for name, (_, _, fits) in CALLS.items():
        assert fits(answers[name]), (name, answers[name].status_code, answers[name].text)


Said = Callable[[Any], bool]
REFUSALS: dict[str, tuple[Callable[[str], Any], tuple[int, Said], tuple[int, Said], tuple[int, Said]]] = {
    "langfuse": (
        lambda work: {**DISPATCH, "code": {"source": f"def evaluate(ctx):\n    {work}\n"}},
        (401, lambda said: said["error"]["code"] == "EXTERNAL_INVOCATION_ERROR"),
        (200, lambda said: said["error"]["code"] == "PAYLOAD_TOO_LARGE"),
        (200, lambda said: said["error"]["code"] == "TIMEOUT"),
    ),
    "langfuse as Lambda": (
        lambda work: {**DISPATCH, "code": {"source": f"def evaluate(ctx):\n    {work}\n"}},
        (403, lambda said: "essage" in "".join(said)),
        (413, lambda said: "essage" in "".join(said)),
        (200, lambda said: said["errorType"] == "Sandbox.Timedout"),
    ),
    "webhook": (
        lambda work: {"inputs": {}, "output": work},
        (401, lambda said: said["code"] == "unauthorized"),
        (413, lambda said: said["code"] == "too_large"),
        (504, lambda said: said["code"] == "timeout"),
    ),
    "opik": (
        lambda work: {"code": f"{OPIK_METRIC}        {work}\n", "data": {}},
        (401, lambda said: said["error"].startswith("401 ")),
        (413, lambda said: said["error"].startswith("413 ")),
        (504, lambda said: said["error"].startswith("504 ")),
    ),
    "openai": (
        lambda work: {
            "grader": {**GRADER["grader"], "source": f"def grade(sample, item):\n    {work}\n"}, "model_sample": "", "item": {}
        },
        (401, lambda said: said["error"]["code"] == "invalid_api_key"),
        (413, lambda said: "message" in said["error"]),
        (200, lambda said: said["metadata"]["errors"]["python_grader_runtime_error"]),
    ),
    "vellum": (
        lambda work: {**VELLUM, "code": f"def main():\n    {work}\n"},
        (401, lambda said: "message" in said),
        (413, lambda said: "message" in said),
        (400, lambda said: "1" in said["message"]),
    ),
    "coze": (
        lambda work: {**COZE, "code": work},
        (401, lambda said: set(said) == {"error"}),
        (200, lambda said: "limit" in said["error"]),  # Coze Loop's own runtimes always answer 200, too
        (200, lambda said: said["error"].startswith("timeout: ")),
    ),
    "laminar": (
        lambda work: {"definition": {"function_code": f"def main(output):\n    {work}\n"}, "input": 1},
        (401, lambda said: set(said) == {"error"}),
        (413, lambda said: set(said) == {"error"}),
        (200, lambda said: "did not finish" in said["error"]),
    ),
    "daytona": (
        lambda work: {"code": work},
        (401, lambda said: said["statusCode"] == 401),
        (413, lambda said: said["statusCode"] == 413),
        (408, lambda said: "timeout" in said["message"]),
    ),
}  # fmt: skip
"""For each wire: a function that returns a request with some code, then the expected status and a check of the body for
a wrong key, for a body over the limit, and for an endless loop.
"""


def test_keys_bodies_and_loops_are_refused_in_each_platform_s_own_terms(keyed: Keyed) -> None:
    assert REFUSALS.keys() == CALLS.keys()
    with (
        httpx.Client(base_url=keyed.url, headers=bearer(keyed.key), timeout=30) as client,
        ThreadPoolExecutor(3) as pool,
    ):
        stored = {"name": "one", "code": f"def evaluate(inputs, outputs, trace):\n    if outputs: {ENDLESS}\n"}
        client.post("/v1/evaluators", json=stored).raise_for_status()
        sandbox = client.post("/wires/daytona/api/sandbox", json={}).json()["id"]

        def answers(name: str) -> list[httpx.Response]:
            body = REFUSALS[name][0]
            path = CALLS[name][0] or f"/wires/daytona/toolbox/{sandbox}/process/code-run"
            wrong = httpx.post(f"{keyed.url}{path}", json=body("return 1"), headers=bearer("eh_no"), timeout=30)
            large = client.post(path, json=body(f"return '{'x' * 70_000}'"))
            for _ in range(9):  # the test tries again, as callers do if no sandbox was free in time
                if (endless := client.post(path, json=body(ENDLESS))).status_code not in (429, 503):
                    break
            return [wrong, large, endless]

        for name, found in zip(REFUSALS, pool.map(answers, REFUSALS), strict=True):
            for (status, fits), got in zip(REFUSALS[name][1:], found, strict=True):
                assert got.status_code == status, (name, got.status_code, got.text)
                assert fits(got.json()), (name, got.text)


@pytest.mark.long
def test_a_caller_that_vanishes_leaves_its_sandbox_to_the_next(saturated: Server) -> None:
    timed_out = {line for line in metrics(saturated) if 'code="timeout"' in line}
    made = saturated.client.post("/wires/daytona/api/sandbox", json={}).json()["id"]
    for name in ("vellum", "daytona"):
        path = CALLS[name][0] or f"/wires/daytona/toolbox/{made}/process/code-run"
        body = json.dumps(REFUSALS[name][0](ENDLESS))
        with socket.create_connection(("127.0.0.1", saturated.port)) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{JSON}: {len(body)}\r\n\r\n{body}".encode())
            time.sleep(0.5)
        while (answer := saturated.client.post("/wires/coze/run_code", json=COZE)).status_code in (429, 503):
            pass
        assert answer.json()["output"]["stdout"] == "1\n", (name, answer.text)
    assert {line for line in metrics(saturated) if 'code="timeout"' in line} == timed_out, (
        "no row of a caller that left may run until its time limit"
    )


@pytest.fixture(scope="module")
def signing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A host whose wires have a secret and a header for signatures."""
    options = {name: {"secret": SECRET, "signature_header": "X-Sig"} for name in wires()}
    with wired(tmp_path_factory.mktemp("signing"), *wires(), **options) as server:
        yield server


def signed(key: str, body: bytes) -> dict[str, str]:
    at = str(int(time.time()))
    return {"x-sig": f"t={at},v1={hmac.new(key.encode(), at.encode() + b'.' + body, sha256).hexdigest()}"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", wires())
def test_a_signature_proves_its_body_and_nothing_else(signing: Server, name: str) -> None:
    """A signature proves only its own body. A caller without the secret reaches no route, and does not use up the rate
    limit of those who have the secret.
    """
    wire = wires()[name].load()
    for probe in wire.probes(""):
        url, body = f"{signing.url}{wire.path}{probe.path}", json.dumps(probe.body).encode()
        if probe.path in wire.open_paths:
            continue
        # signatures must not open GET routes, because all empty bodies have the same signature for five minutes
        if probe.method == "GET":
            for headers in ({"x-sig": "junk"}, signed("a wrong secret", b""), signed(SECRET, b"")):
                assert httpx.get(url, headers=headers).status_code in (401, 403)
            assert httpx.get(url, headers=bearer(SECRET)).status_code == 200
            continue
        for headers in ({"x-sig": "junk"}, signed("a wrong secret", body), signed(SECRET, b"another body")):
            assert httpx.post(url, content=body, headers=headers).status_code in (401, 403)
            assert httpx.post(f"{url}/nowhere", content=body, headers=headers).status_code in (401, 403)
        for content in (body, iter([body])):  # the second content has no length in its headers
            headers = {**probe.headers, **signed(SECRET, body)}
            assert probe.expects(httpx.post(url, content=content, headers=headers, timeout=30))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_sandbox_is_not_shown_or_deleted_for_a_signature(signing: Server, method: str) -> None:
    api = f"{signing.url}/wires/daytona/api/sandbox"
    made = httpx.post(api, json={"env": {"A": "b"}}, headers=bearer(SECRET)).json()
    for headers in ({"x-sig": "junk"}, signed(SECRET, b"")):
        assert httpx.request(method, f"{api}/{made['id']}", headers=headers).status_code == 401
    assert httpx.get(f"{api}/{made['id']}", headers=bearer(SECRET)).json()["env"] == {"A": "b"}


@pytest.mark.long
def test_made_up_signatures_use_up_no_rate(tmp_path: Path) -> None:
    limits = {"EVALUATOR_HOST_RATE_LIMIT_PER_S": "0.001", "EVALUATOR_HOST_RATE_LIMIT_BURST": "2"}
    with wired(tmp_path, "langfuse", environment=limits, langfuse={"secret": SECRET}) as server:
        url = f"{server.url}/wires/langfuse"
        for _ in range(4):
            junk = httpx.post(url, json=DISPATCH, headers={"x-langfuse-signature": "t=1,v1="})
            assert junk.status_code == 401
        assert httpx.post(url, json=DISPATCH, headers=bearer(SECRET)).status_code == 200
