"""Request bodies that try to use up the host's memory or time: each is refused with the right error, and other callers
notice nothing.
"""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.keyed import BODY, is_problem
from tests.processes import peak_mb, restart_peak
from tests.server import Server

MEGABYTE = b"x" * (1 << 20)
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {"EVALUATOR_HOST_BODY_TIMEOUT_S": "2"}
    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=environment) as running:
        assert running.client.post("/v1/evaluate", json=BODY).json()["score"] == 1.0
        yield running


@pytest.fixture(autouse=True)
def the_next_caller_is_served(server: Server) -> Iterator[None]:
    yield
    assert server.client.post("/v1/evaluate", json=BODY).json()["score"] == 1.0


def resident_mb(server: Server) -> float:
    """Return how many MB of memory the host uses now, and reset the recorded peak."""
    restart_peak(server.process.pid)
    return peak_mb(server.process.pid)


def connected(server: Server, timeout_s: float = 30) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout_s)


def answer_to(server: Server, head: bytes, piece: bytes, *, times: int) -> tuple[bytes, int]:
    """Send the head of a request, then the same piece repeatedly until the host accepts no more. Return the answer and
    the number of pieces that were sent.
    """
    with connected(server) as raw:
        raw.sendall(head)
        sent = 0
        try:
            while sent < times:
                raw.sendall(piece)
                sent += 1
        except OSError:
            pass
        try:
            return raw.recv(65536), sent
        except OSError:
            return b"", sent


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_a_gigabyte_is_never_in_memory(server: Server, declared: bool) -> None:
    before = resident_mb(server)
    head = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    if declared:
        answer, sent = answer_to(server, head + b"Content-Length: %d\r\n\r\n" % (1 << 30), MEGABYTE, times=1024)
    else:
        chunk = b"%x\r\n%b\r\n" % (len(MEGABYTE), MEGABYTE)
        answer, sent = answer_to(server, head + b"Transfer-Encoding: chunked\r\n\r\n", chunk, times=1024)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 ")
    assert sent < 200, "the host must stop reading a body that is too large"
    assert peak_mb(server.process.pid) - before < 160, (
        "a body has at most 32 MB, and the host must not hold several copies of it"
    )


def test_a_connection_ends_if_the_host_does_not_read_the_body(server: Server) -> None:
    """If the host answers before it has read the whole body, the connection must not stay open forever."""
    with connected(server) as raw:
        raw.sendall(b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        answer = raw.recv(65536)
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert b"\r\nconnection: close\r\n" in answer
        stopped = threading.Event()

        def dribble() -> None:
            while not stopped.wait(0.2):
                try:
                    raw.send(b"x")
                except OSError:
                    return

        dribbling = threading.Thread(target=dribble)
        dribbling.start()
        try:
            while raw.recv(65536):
                pass
        except ConnectionError:
            pass
        finally:
            stopped.set()
            dribbling.join()


def test_a_body_that_dribbles_is_hung_up_on(server: Server) -> None:
    slow = []
    for _ in range(50):
        raw = connected(server)
        raw.sendall(b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        slow.append(raw)
    assert server.client.post("/v1/evaluate", json=BODY).status_code == 200, (
        "other callers must be served while these bodies arrive slowly"
    )
    until = time.monotonic() + 20
    answers = [b""] * len(slow)
    while not all(answers) and time.monotonic() < until:
        for number, raw in enumerate(slow):
            raw.settimeout(0.01)
            try:
                raw.send(b" ")
                answers[number] = answers[number] or raw.recv(65536)
            except (TimeoutError, ConnectionError):
                continue
    for raw, answer in zip(slow, answers, strict=True):
        assert answer.startswith(b"HTTP/1.1 408 ")
        raw.close()


@pytest.mark.long
def test_a_slow_line_is_not_an_attack(server: Server) -> None:
    """The host accepts a body that arrives slowly and takes twice the time limit, if its rate is always above the
    lowest allowed rate.
    """
    body = json.dumps({**BODY, "inputs": {"correct_answer": "Paris", "padding": "x" * 3_000_000}}).encode()

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(body), 400_000):
            time.sleep(0.5)
            yield body[at : at + 400_000]

    response = server.client.post("/v1/evaluate", content=pieces(), headers=JSON)
    assert response.json()["score"] == 1.0


BOMBS = {
    "nesting of lists": lambda: b'{"evaluator": {"code": "x"}, "outputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nesting of objects": lambda: (
        b'{"evaluator": {"code": "x"}, "outputs": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"
    ),
    "nesting left open": lambda: b"[" * 5_000_000,
    "a number of a million digits": lambda: b'{"evaluator": {"code": "x"}, "outputs": ' + b"9" * 1_000_000 + b"}",
    "an exponent beyond a float": lambda: b'{"evaluator": {"code": "x", "threshold": 1e400}}',
    "a threshold that is not a number": lambda: b'{"evaluator": {"code": "x", "threshold": NaN}}',
    "a limit beyond 64 bits": lambda: b'{"evaluator": {"code": "x", "limits": {"memory_mb": 99999999999999999999999}}}',
    "a limit beyond a float": lambda: b'{"evaluator": {"code": "x", "limits": {"memory_mb": ' + b"9" * 400 + b"}}}",
    "a threshold beyond a float": lambda: b'{"evaluator": {"code": "x", "threshold": ' + b"9" * 400 + b"}}",
    "rows by the million": lambda: b'{"evaluator": {"code": "x"}, "rows": [' + b"{}," * 2_000_000 + b"{}]}",
    "wrong rows by the million": lambda: b'{"evaluator": {"code": "x"}, "rows": [' + b"0," * 4_000_000 + b"0]}",
    "wrong pins by the million": lambda: b'{"evaluator": {"code": "x", "packages": [' + b"0," * 4_000_000 + b"0]}}",
    "pins by the million": lambda: b'{"evaluator": {"code": "x", "packages": [' + b'"a",' * 1_000_000 + b'"a"]}}',
    "objects by the million": lambda: b'{"evaluator": {"code": "x"}, "outputs": [' + b"{}," * 10_000_000 + b"{}]}",
    "entries by the million": lambda: b'{"evaluator": {"code": "x"}, "inputs": {' + b'"":0,' * 6_000_000 + b'"a":0}}',
    "UTF-16": lambda: '{"evaluator": {"code": "x"}}'.encode("utf-16"),
    "a list of nothing": lambda: b"[" + b"null," * 1_000_000 + b"null]",
}


@pytest.mark.sampled(18)
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_json_that_explodes_is_refused(server: Server, bomb: Callable[[], bytes]) -> None:
    before, body = resident_mb(server), bomb()
    path = "/v1/evaluate/batch" if b'"rows"' in body else "/v1/evaluate"
    response = server.client.post(path, content=body, headers=JSON)
    assert is_problem(response, 422, "invalid_request")
    assert len(response.content) < 20_000, "a refusal must not repeat the request"
    assert peak_mb(server.process.pid) - before < 500


@pytest.mark.parametrize("name", ["score", "tolerance", "min"])
def test_an_expectation_beyond_a_float_is_refused(server: Server, name: str) -> None:
    case = b'{"inputs": {}, "expect": {"label": "a", "%b": %b}}' % (name.encode(), b"9" * 400)
    code = b'{"evaluator": {"code": "def evaluate(inputs, outputs, trace): return 1"}, "cases": [%b]}' % case
    response = server.client.post("/v1/check", content=code, headers=JSON)
    assert is_problem(response, 422, "invalid_request")
    assert "a float can hold" in response.text


@pytest.mark.long
def test_hundreds_of_thousands_of_keys_are_a_row_like_any_other(server: Server) -> None:
    keys = b",".join(b'"k%d":%d' % (n, n) for n in range(300_000))
    code = json.dumps("def evaluate(inputs, outputs, trace):\n    return len(inputs)\n").encode()
    body = b'{"evaluator": {"code": %b}, "inputs": {%b}}' % (code, keys)
    result = server.client.post("/v1/evaluate", content=body, headers=JSON).json()
    assert result["score"] == 300_000 or result["error"]["code"] in ("memory_limit", "timeout")


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"," * 300_000 + b"\n" + b"1," * 300_000, "text/csv"),
        (json.dumps({f"k{n}": 1 for n in range(300_000)}).encode(), "application/x-ndjson"),
        (b"".join(b'{"k%d": 1}\n' % n for n in range(30_000)), "application/x-ndjson"),
        (b"a," + b"b" * 5_000_000 + b"\n1,2\n", "text/csv"),
    ],
    ids=["csv", "one row", "another column in each row", "a long name"],
)
def test_any_number_of_columns_gives_a_short_answer(server: Server, content: bytes, kind: str) -> None:
    headers = {"content-type": kind}
    answer = server.client.post("/v1/datasets?name=wide&replace=true", content=content, headers=headers)
    assert answer.status_code == 201, answer.text
    assert 1 <= len(answer.json()["columns"]) <= 1000
    assert len(answer.content) < 400_000
    estimate = {"evaluators": [BODY["evaluator"]], "dataset": "wide", "mapping": {"outputs": "k299999"}}
    said = server.client.post("/v1/jobs/estimate", json=estimate)
    assert len(said.content) < 400_000


def test_no_part_of_the_host_reads_another_one_of_two_equal_keys(server: Server) -> None:
    body = b'{"evaluator": {"code": "def evaluate(i, o, t): return 0.25", "code": %b}, "inputs": {"n": 1, "n": 2}}' % (
        json.dumps("def evaluate(inputs, outputs, trace):\n    return inputs['n']\n").encode()
    )
    response = server.client.post("/v1/evaluate", content=body, headers=JSON)
    assert is_problem(response, 422, "invalid_request")
    assert "$.evaluator" in response.json()["errors"][0]["message"]


def test_an_integer_beyond_64_bits_is_a_setting_like_any_other(server: Server) -> None:
    body = {**BODY, "evaluator": {**BODY["evaluator"], "settings": {"config": {"n": 10**30}}}}
    assert server.client.post("/v1/evaluate", content=json.dumps(body), headers=JSON).json()["score"] == 1.0


@pytest.mark.long
def test_a_million_unknown_fields_are_named_in_a_short_answer(server: Server) -> None:
    fields = b",".join(b'"f%d":0' % n for n in range(1_000_000))
    response = server.client.post("/v1/evaluate", content=b'{"evaluator": {"code": "x"}, %b}' % fields, headers=JSON)
    assert is_problem(response, 422, "invalid_request")
    assert len(response.json()["errors"]) == 1, "the host must not make a message for each field"
    assert len(response.content) < 20_000


@pytest.mark.sampled(3)
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"])
def test_a_compressed_bomb_is_not_unpacked(server: Server, encoding: str) -> None:
    bomb = gzip.compress(b'{"evaluator": {"code": "' + b"x" * (64 << 20) + b'"}}') if encoding == "gzip" else b"x" * 100
    before = resident_mb(server)
    response = server.client.post("/v1/evaluate", content=bomb, headers={**JSON, "Content-Encoding": encoding})
    assert is_problem(response, 422, "invalid_request")
    assert "Content-Encoding" in response.json()["detail"]
    assert peak_mb(server.process.pid) - before < 20


@pytest.mark.long
def test_a_client_that_never_reads_costs_no_one_else_anything(server: Server) -> None:
    rows = [{"outputs": "x" * 1000}] * 5000
    code = "def evaluate(inputs, outputs, trace):\n    print('y' * 1000)\n    return 1.0\n"
    body = json.dumps({"evaluator": {"code": code}, "rows": rows, "isolation": "batch"}).encode()
    head = b"POST /v1/evaluate/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with connected(server, 60) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert raw.recv(10).startswith(b"HTTP/1.1")
        for _ in range(20):
            assert server.client.post("/v1/evaluate", json=BODY).json()["score"] == 1.0


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_a_body_that_a_form_can_post_is_refused(server: Server, kind: str | None) -> None:
    """The host refuses content types that a form on any web page can post, because the browser does not ask the host
    for permission first.
    """
    headers = {"Content-Type": kind} if kind else {}
    response = httpx.post(f"{server.url}/v1/evaluate", content=json.dumps(BODY), headers=headers)
    assert is_problem(response, 422, "invalid_request")
