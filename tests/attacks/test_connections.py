"""Connections that use a host's resources but never become a request: each is ended, and other callers notice nothing."""

import asyncio
import contextlib
import http.client
import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn

from evaluator_host.client import Client
from evaluator_host.platform.http.connection_limits import HEAD_BYTES, HEAD_TIMEOUT_S, ConnectionLimits
from tests.server import Server

HEAD = b"POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
MEGABYTE = b"x" * (1 << 20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


def sent_until_closed(server: Server, start: bytes, piece: bytes) -> int:
    """Send `start`, then `piece` at most 64 times, until the host accepts no more. Return the number of pieces that
    were sent.
    """
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


def test_a_large_body_in_many_small_pieces_is_not_a_large_head(server: Server) -> None:
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


def test_a_body_in_tiny_chunks_is_refused(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(CHUNKED + b"1\r\nx\r\n" * 90_000)
        answer = raw.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"tiny chunks" in answer
    assert sent_until_closed(server, CHUNKED, b"1\r\nx\r\n" * 100_000) < 64
    assert server.client.get("/healthz").status_code == 200


@pytest.mark.long
def test_rows_that_are_sent_one_by_one_are_stored(server: Server) -> None:
    lines = (b'{"n":1}\n' for _ in range(150_000))
    headers = {"Content-Type": "application/x-ndjson"}
    answer = server.client.post("/v1/datasets?name=short", content=lines, headers=headers, timeout=60)
    assert answer.json()["rows"] == 150_000, answer.text
    with Client(server.url) as client:
        assert client.datasets.upload("short-too", [{"n": 1}] * 30_000).rows == 30_000


@pytest.mark.long
def test_a_connection_that_was_idle_for_longer_than_clients_keep_one_still_answers(server: Server) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        for wait_s in (0, 6):  # clients such as httpx keep an idle connection for 5 s
            time.sleep(wait_s)
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            assert (answer.status, answer.read() != b"") == (200, True)


@pytest.mark.long
def test_heads_that_never_end_are_hung_up_on(server: Server) -> None:
    with contextlib.ExitStack() as opened:
        slow = [
            opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=HEAD_TIMEOUT_S + 20))
            for _ in range(100)
        ]
        for number, raw in enumerate(slow):
            raw.sendall(HEAD[: number % len(HEAD)])  # some connections send nothing at all
        assert server.client.get("/healthz").status_code == 200
        for raw in slow:
            assert raw.recv(1) == b""


@dataclass
class Few:
    """A server that accepts three connections at a time. A request for /wait is answered once `answer` is set."""

    port: int
    waiting: int = 0
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/wait":
            self.waiting += 1
            await self.answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def connect(self, path: str) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.writers.append(writer)
        return reader

    async def wait_for(self, requests: int) -> None:
        async with asyncio.timeout(10):
            while self.waiting < requests:
                await asyncio.sleep(0.01)


class _Server(uvicorn.Server):
    capture_signals = staticmethod(contextlib.nullcontext)  # keep the tests' own signal handlers


async def status(reader: asyncio.StreamReader) -> bytes:
    """Read a response with a body of two bytes, and return its status. Return an empty value if the connection was
    closed.
    """
    head = await asyncio.wait_for(reader.readline(), 10)
    while head and (await reader.readline()).strip():
        pass
    await reader.read(2)
    return head[9:12]


@pytest.fixture
async def few() -> AsyncIterator[Few]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = Few(listener.getsockname()[1])
        limits = type("Three", (ConnectionLimits,), {"most_connections": 3})
        config = uvicorn.Config(served.app, http=limits, ws="none", lifespan="off", log_config=None, interface="asgi3")
        server = _Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        yield served
        served.answer.set()
        server.should_exit = True
        await task
        for writer in served.writers:
            writer.close()


async def test_the_connection_that_was_idle_longest_is_closed_if_none_is_free(few: Few) -> None:
    busy = await few.connect("/wait")
    await few.wait_for(1)
    quiet = []
    for _ in range(2):
        quiet.append(await few.connect("/"))
        assert await status(quiet[-1]) == b"200"
    newcomer = await few.connect("/")
    assert await status(newcomer) == b"200"
    # this is the connection that waited longest, so it was closed
    assert await asyncio.wait_for(quiet[0].read(), 10) == b""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(quiet[1].read(), 0.1)
    few.answer.set()
    assert await status(busy) == b"200"


async def test_a_new_connection_is_refused_if_all_others_wait_for_answers(few: Few) -> None:
    busy = [await few.connect("/wait") for _ in range(3)]
    await few.wait_for(3)
    newcomer = await few.connect("/")
    assert (await asyncio.wait_for(newcomer.read(), 10)).startswith(b"HTTP/1.1 429 ")
    few.answer.set()
    assert [await status(reader) for reader in busy] == [b"200"] * 3
