"""Connections that cost a host and never become a request: each is ended, and other callers notice nothing."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from evaluator_host.web.http.connection_limits import HEAD_BYTES, HEAD_TIMEOUT_S
from tests.server import Server

HEAD = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
MEGABYTE = b"x" * (1 << 20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


def sent_until_closed(server: Server, start: bytes, piece: bytes) -> int:
    """Send `start`, then `piece` for as long as the host takes it, at most 64 times; return how many went out."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(start)
        for count in range(64):
            try:
                raw.sendall(piece)
            except ConnectionError:
                return count
    return 64


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (HEAD + b"X: ", MEGABYTE),
        (HEAD, b"X: y\r\n" * 100_000),
        (CHUNKED + b"2\r\n{}\r\n0\r\nX: ", MEGABYTE),
        (CHUNKED + b"2;", MEGABYTE),
    ],
    ids=["header", "many headers", "trailer", "chunk extension"],
)
def test_a_head_without_end_is_cut(server: Server, start: bytes, piece: bytes) -> None:
    assert sent_until_closed(server, start, piece) < 64
    assert server.client.get("/healthz").status_code == 200


def test_a_head_that_is_too_large_is_told_so(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(HEAD + b"X: " + b"x" * HEAD_BYTES)
        answer = raw.recv(4096)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"code": "too_large"' in answer


def test_a_large_body_in_many_small_pieces_is_no_large_head(server: Server) -> None:
    body = (
        b'{"evaluator": {"code": "def evaluate(i, o, t):\\n    return len(o)"}, "outputs": "' + b"y" * 200_000 + b'"}'
    )
    pieces = b"".join(b"10\r\n%b\r\n" % body[at : at + 16] for at in range(0, len(body) // 16 * 16, 16))
    rest = body[len(body) // 16 * 16 :]
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(CHUNKED + pieces + (b"%x\r\n%b\r\n" % (len(rest), rest) if rest else b"") + b"0\r\n\r\n")
        answer = b""
        while b'"score":200000' not in answer:
            received = raw.recv(65536)
            assert received, answer
            answer += received
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_heads_that_never_end_are_hung_up_on(server: Server) -> None:
    with contextlib.ExitStack() as opened:
        slow = [
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=HEAD_TIMEOUT_S + 20))
            for _ in range(100)
        ]
        for number, raw in enumerate(slow):
            raw.sendall(HEAD[: number % len(HEAD)])  # some say nothing at all
        assert server.client.get("/healthz").status_code == 200
        for raw in slow:
            assert raw.recv(1) == b""
