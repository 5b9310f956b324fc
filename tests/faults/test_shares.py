"""One workspace opens more and more streams, uploads and jobs: another workspace is still served, and the host can stop
in time.
"""

import json
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.keyed import BODY, bearer, make_key
from tests.left_behind import until_nothing_is_left
from tests.server import COMMAND, Server

SLOW = {"code": "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(50)\n", "limits": {"timeout_s": 60}}
FLOOD = 250  # number of connections; a host with 512 descriptors accepts 288
GRACE_S = 10


class Tenants:
    """A host with a workspace `loud` and a neighbour."""

    def __init__(self, server: Server, *, loud: str, quiet: str) -> None:
        self.server = server
        self.loud, self.quiet = bearer(loud), bearer(quiet)
        self.sockets = ExitStack()

    def flood(self, head: str, *, body: bytes = b"") -> list[socket.socket]:
        """Open many connections as workspace `loud`; each connection sends these bytes and waits."""
        lines = f"{head}\r\nHost: 127.0.0.1\r\nAuthorization: {self.loud['Authorization']}\r\n\r\n".encode() + body
        held = []
        for _ in range(FLOOD):
            one = self.sockets.enter_context(socket.create_connection(("127.0.0.1", self.server.port)))
            one.sendall(lines)
            held.append(one)
        return held

    def neighbour(self) -> list[int]:
        """Make calls as the neighbour, and return their statuses."""
        with httpx.Client(base_url=self.server.url, timeout=30) as client:
            asked = [client.get(path, headers=self.quiet) for path in ("/healthz", "/v1/info", "/v1/jobs")]
            return [*(one.status_code for one in asked), self.evaluate(client, self.quiet)]

    def evaluate(self, client: httpx.Client, key: dict[str, str]) -> int:
        return client.post("/v1/evaluate", json=BODY, headers=key).status_code

    def job(self, evaluator: dict[str, object], key: dict[str, str]) -> str:
        body = {"evaluators": [evaluator], "dataset": {"rows": [{"outputs": 1}] * 3}}
        made = self.server.client.post("/v1/jobs", json=body, headers=key)
        assert made.status_code == 202, made.text
        return str(made.json()["id"])


@pytest.fixture
def tenants(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tenants]:
    """A host with two workspaces; its grace period is `GRACE_S`, or the number of seconds that a test sets."""
    grace_s = getattr(request, "param", GRACE_S)
    url = f"sqlite:///{tmp_path / 'host.db'}"
    # the keys are made before the host starts, so that it requires keys from the beginning
    keys = {name: make_key(name, name, url=url) for name in ("loud", "quiet")}
    server = Server(
        log=tmp_path / "host.log",
        environment={
            "EVALUATOR_HOST_DATABASE_URL": url,
            "EVALUATOR_HOST_STOP_GRACE_S": str(grace_s),
            "EVALUATOR_HOST_BODY_TIMEOUT_S": "120",
        },
        command=("prlimit", "--nofile=512:512", *COMMAND),
        few_sandboxes=False,  # by default, a host divides its descriptors between connections and sandboxes
    )
    with server:
        made = Tenants(server, **keys)
        assert made.neighbour() == [200] * 4
        with made.sockets:
            yield made
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(grace_s + 5) == 0, server.log
    until_nothing_is_left(server.process.pid, docker=[])
    assert "Traceback" not in server.log
    assert "ERROR" not in server.log, server.log


def statuses(held: list[socket.socket], *, count: int) -> Counter[str]:
    """Wait until `count` connections have an answer, and return the statuses of the answers so far."""
    seen: dict[socket.socket, str] = {}
    until = time.monotonic() + 60
    while len(seen) < count:
        assert time.monotonic() < until, Counter(seen.values())
        for one in held:
            one.setblocking(False)
            try:
                head = one.recv(4096) if one not in seen else b""
            except BlockingIOError:
                continue
            if head:
                seen[one] = head.split(b" ")[1].decode()
        time.sleep(0.1)
    return Counter(seen.values())


@pytest.mark.long("it takes hundreds of connections; test_fairness.py has a flood of calls")
@pytest.mark.parametrize("tenants", [600], indirect=True)
def test_event_streams_of_one_key_are_few_and_end_with_the_host(tenants: Tenants) -> None:
    job = tenants.job(SLOW, tenants.loud)
    held = tenants.flood(f"GET /v1/jobs/{job}/events HTTP/1.1")
    assert tenants.neighbour() == [200] * 4
    seen = statuses(held, count=FLOOD - 10)
    assert (set(seen), seen["200"]) == ({"200", "429"}, 16)
    refused = tenants.server.client.get(f"/v1/jobs/{job}/events", headers=tenants.loud)
    assert (refused.status_code, refused.json()["code"]) == (429, "busy")
    assert "16 event streams" in refused.json()["detail"]
    unread = tenants.server.client.get("/v1/jobs/job_of_nobody/events", headers=tenants.loud)
    assert unread.status_code == 429, "the host must refuse the stream before it looks for the job"
    tenants.server.process.send_signal(signal.SIGTERM)
    assert tenants.server.process.wait(100) == 0, "streams must not use up the whole grace period"


@pytest.mark.long
def test_uploads_of_one_workspace_leave_connections_and_a_hang_up_is_not_a_fault(tenants: Tenants) -> None:
    head = "POST /v1/datasets?name=x HTTP/1.1\r\nContent-Type: text/csv\r\nContent-Length: 1000000"
    held = tenants.flood(head, body=b"a")
    assert tenants.neighbour() == [200] * 4
    assert set(statuses(held, count=FLOOD - 40)) == {"429"}, "at most 32 uploads of a workspace may run at a time"
    tenants.sockets.close()
    until = time.monotonic() + 30
    while tenants.server.log.count("hung up") < 20:
        assert time.monotonic() < until, tenants.server.log[-2000:]
        time.sleep(0.05)
    with httpx.Client(base_url=tenants.server.url, timeout=30) as client:
        assert tenants.evaluate(client, tenants.loud) == 200


@pytest.mark.long
def test_a_host_stops_in_time_whatever_its_jobs_calls_and_watchers_do(tenants: Tenants) -> None:
    jobs = [tenants.job(SLOW, tenants.loud) for _ in range(4)]
    tenants.flood(f"GET /v1/jobs/{jobs[0]}/events HTTP/1.1")
    body = json.dumps({"evaluator": SLOW}).encode()
    head = f"POST /v1/evaluate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    tenants.flood(head, body=body)
    time.sleep(1)
