"""A host with two processes stops attacks on data that passes through both processes, as a host with one process does.
Some cases also check that the results are the same.

`EVALUATOR_HOST_WORKERS=2 make test-all ARGS='tests/attacks/test_catalogue.py tests/contract/test_conformance.py'` tries
all attacks and cases.
"""

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest

from evaluator_host.selftest.catalogue import load_attacks
from evaluator_host.selftest.host import load_host_attacks
from tests.attacks.processes import attack_processes
from tests.conftest import BACKENDS, settings
from tests.contract.test_cases import BY_ID, LINK
from tests.over_http import calling_processes, connection_to, served
from tests.server import Server

THROUGH = {
    # attacks on other workspaces, on other rows of the same evaluator, and on batches
    "files-for-another-workspace", "row-before", "crash-of-a-batch",
    # attacks on granted models and on what is left of a budget
    "model-key", "model-second-request", "model-after-the-row",
    "words-for-the-next-row", "huge-text", "endless-loop",  # attacks on limits of logs, results and time
}  # fmt: skip
"""Attacks on data that passes through the processes between a caller and a sandbox."""
ON_THE_HOST = {"numbers-without-end"}


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
async def test_attacks_are_stopped(backend: str, tmp_path: Path) -> None:
    attacks = [attack for attack in load_attacks() if attack.name in THROUGH]
    if backend == "bubblewrap":
        attacks += [attack for attack in load_host_attacks() if attack.name in ON_THE_HOST]
    made = await attack_processes(settings(backend, workers=2), attacks, tmp_path, at_once=4)
    assert list(made.host) == []
    assert {one.attack.name: (one.verdict, *one.problems) for one in made.results} == {
        attack.name: ("stopped",) for attack in attacks
    }


@pytest.mark.long
async def test_the_cases_of_a_link_have_their_outcomes(tmp_path: Path) -> None:
    async with served("bubblewrap", tmp_path, sandbox_start="template") as host:
        for case in map(BY_ID.__getitem__, LINK):
            result = await host.evaluate(case.evaluator, case.row)
            assert not case.mismatches(result), result


HEAD = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
ODD = [
    b"GET /v1/info HTTP/1.0\r\n\r\n",  # a request without a Host header
    b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    b"GET /v1/nothing/../info HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example//v1/info?a|b=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nConnection: host\r\nX-Of: \xff\r\n\r\n",
    b"HEAD /docs HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/datasets?name=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/evaluators HTTP/1.1\r\n"
    + HEAD.replace(b"localhost", b"evil.example")
    + b"\r\n{",  # a request with a body that never arrives completely
    b"POST /v1/evaluators HTTP/1.1\r\n" + HEAD + b"\r\n{",
    b"POST /v1/evaluators HTTP/1.1\r\n" + HEAD.replace(b"100", b"9" * 11) + b"\r\n{",
]
"""Unusual, faulty and incomplete requests. Each process of a host must answer them in the same way."""


def answer_of(server: Server, pid: int, request: bytes) -> list[bytes]:
    """Return the status and the body of an answer to a request, from a given process of a host."""
    with connection_to(server, pid) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
            head, _, body = answer.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if length and (len(body) >= int(length[1]) or request.startswith(b"HEAD")):
                break
    return [answer.split(b"\r\n")[0], answer.partition(b"\r\n\r\n")[2]]


@pytest.mark.long
async def test_whichever_process_accepts_a_request_it_is_answered_alike(tmp_path: Path) -> None:
    async with served("bubblewrap", tmp_path, body_timeout_s=1) as host:
        first, (other,) = host.server.process.pid, calling_processes(host.server)
        for request in ODD:
            key = host.server.client.headers["Authorization"].encode()
            sent = request.replace(b"\r\n", b"\r\nAuthorization: " + key + b"\r\n", 1)
            answers = [await asyncio.to_thread(answer_of, host.server, pid, sent) for pid in (first, other)]
            assert answers[0] == answers[1], request
            assert answers[0][0].startswith(b"HTTP/1.1 "), request
        assert "Traceback" not in host.server.log


async def test_a_row_of_too_many_levels_to_pass_on_fails_as_it_does_in_one_process(tmp_path: Path) -> None:
    async with served("bubblewrap", tmp_path) as host:
        for number in range(6):  # enough evaluators that each of the two processes gets some
            code = f"def evaluate(inputs, outputs, trace):\n    return 1.0  # {number}\n"
            body = f'{{"evaluator": {{"code": {json.dumps(code)}}}, "inputs": {{"a": {"[" * 700 + "]" * 700}}}}}'
            async with httpx.AsyncClient(
                base_url=host.server.url, headers=host.server.client.headers, timeout=60
            ) as client:
                answer = await client.post("/v1/evaluate", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == httpx.codes.OK, answer.text
            assert answer.json()["error"]["code"] == "binding_error"
