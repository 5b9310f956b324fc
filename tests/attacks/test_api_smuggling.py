"""Byte streams that a proxy and the host could split into different requests are refused, so nobody can send requests
in another caller's name.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server import Server

HEAD = "POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HIDDEN = "GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = HIDDEN.removesuffix("\r\n") + "Connection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


def answers_to(server: Server, request: str, *, most: int = 1000) -> list[int]:
    """Send bytes, and return the statuses of the answers. Stop after `most` answers, or when the host ends the
    connection.
    """
    with socket.create_connection(("127.0.0.1", server.port), timeout=200) as raw:
        raw.sendall(request.encode("latin-1"))
        received = b""
        with suppress(ConnectionError):
            while received.count(b"HTTP/1.1 ") < most and (part := raw.recv(65536)):
                received += part
    return [int(answer.split(b" ", 1)[0]) for answer in received.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    "request_text",
    [
        HEAD + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + HIDDEN,
        HEAD + "Content-Length: 44, 0\r\n\r\n" + HIDDEN,
        HEAD + "Content-Length: +0\r\n\r\n" + HIDDEN,
        HEAD + "Content-Length: 0x2c\r\n\r\n" + HIDDEN,
        HEAD + "Content-Length: -1\r\n\r\n" + HIDDEN,
        HEAD + "Content-Length: 99999999999999999999999999\r\n\r\n" + HIDDEN,
        HEAD + "Content-Length : 0\r\n\r\n" + HIDDEN,
        HEAD + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
        HEAD + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + HIDDEN,
        HEAD + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n" + HIDDEN,
        HEAD + "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n" + HIDDEN,
        HEAD + "X: a\r\n Content-Length: 0\r\n\r\n" + HIDDEN,
        HEAD + "X: a\rContent-Length: 0\r\n\r\n" + HIDDEN,
        HEAD + "X\0: a\r\n\r\n" + HIDDEN,
        HEAD + ": empty\r\n\r\n" + HIDDEN,
        "POST /v1/evaluate\r\n\r\n" + HIDDEN,
        "POST /v1/evaluate HTTP/9.9\r\nHost: localhost\r\n\r\n" + HIDDEN,
        "\0\0\0\0" + HIDDEN,
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN,
    ],
)
def test_bytes_that_can_be_read_in_two_ways_are_refused_and_end_the_connection(
    server: Server, request_text: str
) -> None:
    answers = answers_to(server, request_text)
    assert 200 not in answers, "the host must not answer the hidden request"
    assert len(answers) <= 1
    assert all(400 <= status < 500 for status in answers)
    assert server.client.get("/healthz").status_code == 200


def test_no_http_is_answered_in_the_one_error_shape(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is TLS\r\n\r\n")
        answer = raw.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in answer
    assert b"x-content-type-options: nosniff" in answer
    assert b'"code": "invalid_request"' in answer


def test_honest_requests_in_a_row_are_answered_in_a_row(server: Server) -> None:
    assert answers_to(server, HIDDEN * 2 + LAST) == [200] * 3
    assert answers_to(server, HEAD + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + LAST) == [422, 200]


def test_thousands_of_requests_at_once_are_not_kept(server: Server) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert server.client.get("/healthz").status_code == 200
    before_mb = most_mb = resident_mb(server.process.pid)
    floods = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(10)]
    for flood in floods:
        flood.sendall(one * 6000)
    for _ in range(20):
        assert server.client.get("/healthz").status_code == 200
        most_mb = max(most_mb, resident_mb(server.process.pid))
    for flood in floods:
        flood.close()
    assert most_mb - before_mb < 30
    assert answers_to(server, (HIDDEN * 20) + LAST) == [200] * 21, (
        "the host must answer requests that a client sends before it reads answers"
    )


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / (1 << 20)


def test_a_request_for_another_protocol_stays_http(server: Server) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
    assert answers_to(server, HIDDEN.removesuffix("\r\n") + upgrade + "\r\n", most=1) == [200]
    h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    assert 101 not in answers_to(server, HIDDEN.removesuffix("\r\n") + h2c + "\r\n", most=1)
    for other in ("tls/1.3", "WebSocket, h2c", "irc"):
        upgrade = f"Connection: upgrade\r\nUpgrade: {other}\r\n\r\n"
        answers_to(server, HIDDEN.removesuffix("\r\n") + upgrade, most=1)
    assert "upgrade" not in server.log.lower(), "the host must not log this, because anybody could then fill the log"
    assert "websocket" not in server.log.lower()


@pytest.mark.parametrize(
    "path",
    [
        "/v1/environments/../../../../etc/passwd",
        "/v1/environments/..%2f..%2f..%2fetc%2fpasswd",
        "/v1/environments/%2e%2e/%2e%2e/etc/passwd",
        "/v1/environments/..%5c..%5cetc",
        "/v1/environments/sha256:..%2f..%2f..%2fetc",
        "/v1/environments/%00",
        "/v1/environments/sha256:" + "0" * 64 + "%2f..",
        "/v1/environments/" + "a" * 20_000,
        "//etc/passwd",
        "/docs/../../etc/passwd",
        "/%c0%ae%c0%ae/",
        "/v1/environments/%ff%fe",
    ],
)
def test_a_path_that_leads_elsewhere_leads_nowhere(server: Server, path: str) -> None:
    for method in ("GET", "DELETE"):
        answers = answers_to(server, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert answers, "the host must answer"
        assert all(status in (400, 404, 405, 422) for status in answers)
