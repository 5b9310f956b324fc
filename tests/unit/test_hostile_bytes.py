"""Few bytes can make a lot of work: chunks of a single byte, or JSON of empty lists. The host refuses such input, or
lets other tasks run in between.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from unittest.mock import AsyncMock, Mock

import httpx
import pytest

from evaluator_host.engine.sandbox.messages import read_loaded
from evaluator_host.engine.sandbox.protocol import HEADER_BYTES, Frame, FrameDecoder, ProtocolError, encode
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.platform.models.endpoint import ANSWER_BYTES, Endpoint, read_body
from evaluator_host.platform.models.gateway import proxy
from evaluator_host.platform.models.gateway.connection import Rejected, Request, RequestReader, Tunnel
from evaluator_host.platform.models.gateway.hosts import HostPort
from evaluator_host.platform.wires import forward
from evaluator_host.types.jobs import Target
from tests.loop_watch import held_s, watching
from tests.unit.test_large_answers import connected

CHUNKS: Final = 5000
CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * CHUNKS + b"0\r\n\r\n"


def chunk(size: int) -> bytes:
    return b"%x\r\n%b\r\n" % (size, b"x" * size)


def reader() -> RequestReader:
    made = RequestReader(lambda _: True, lambda: None)
    made.feed(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    return made


def test_a_request_of_a_row_in_tiny_chunks_is_refused() -> None:
    with pytest.raises(Rejected, match="2,000 tiny chunks"):
        reader().feed(chunk(1) * 2100)


def test_a_request_of_a_row_in_chunks_of_ordinary_sizes_is_read() -> None:
    parts = [chunk(1)] * 1000 + [chunk(256)] * 5000
    request = reader().feed(b"".join(parts) + b"0\r\n\r\n")
    assert request is not None
    assert len(request.body) == 1000 + 256 * 5000


async def turns_during(work: Awaitable[Any]) -> int:
    """Return how often another task ran while this work was done."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await work
    counting.cancel()
    return turns


@asynccontextmanager
async def answering() -> AsyncIterator[str]:
    """A server that answers in chunks of a single byte."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize("read", [lambda one: read_body(one, CHUNKS), forward._bounded], ids=["a model", "a server"])
async def test_an_answer_in_tiny_chunks_lets_other_tasks_run(read: Callable[[httpx.Response], Awaitable[Any]]) -> None:
    async with answering() as url, httpx.AsyncClient() as client, client.stream("GET", url) as response:
        assert await turns_during(read(response)) > CHUNKS // 2


async def test_an_answer_to_a_row_in_tiny_chunks_lets_other_tasks_run() -> None:
    streams, wire = asyncio.StreamReader(), Mock(drain=AsyncMock())
    streams.feed_data(CHUNKED)
    request = Request("GET", "/", {}, b"", HostPort("api.test", 80))
    row = proxy.RowTraffic("alpha", lambda _: None, Mock(), AsyncMock(), lambda: 9.0)
    sent = proxy._anew(request, HostPort("api.test", 80))
    assert await turns_during(proxy._pass_request(connected(wire), request, sent, row, (streams, Mock()))) > CHUNKS // 2


class Whole(httpx.AsyncByteStream):
    """A body in one piece."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


@pytest.mark.sampled(2)
@pytest.mark.parametrize("key", [None, "a secret key"])
async def test_an_answer_of_many_values_does_not_hold_the_loop(key: str | None) -> None:
    head = b'{"choices": [{"message": {"content": "a secret key"}}], "more": ['
    body = head + b"[]," * ((ANSWER_BYTES - len(head)) // 3 - 2) + b"1]}"
    provider = httpx.MockTransport(lambda _: httpx.Response(200, stream=Whole(body)))
    async with httpx.AsyncClient(transport=provider) as client:
        endpoint = Endpoint(Target("http://model/v1", "m"), key, client)
        with watching() as watch:
            answer = await asyncio.create_task(
                endpoint.ask([{"role": "user", "content": body.decode()[:ANSWER_BYTES]}])
            )
        assert answer.output == ("a secret key" if key is None else "[masked]")
        assert watch.longest_s < held_s(), watch.longest


def frame(more: bytes) -> bytes:
    """Return a frame of type `loaded` with this field in its header."""
    head = b'{"type":"loaded","contract":"evaluate","contract_source":"","reason":"","entry":"evaluate",' + more + b"}"
    return b"".join((len(head).to_bytes(4), (0).to_bytes(4), head))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("item", [b"[],", b"{},", b'"",', b'"\\\\",', b'"\\"",', b"1,", b'{"a":"b"},'])
def test_a_header_of_many_values_is_refused(item: bytes) -> None:
    items = item * ((HEADER_BYTES - 500) // len(item))
    with pytest.raises(ProtocolError, match="more values"):
        list(FrameDecoder().feed(frame(b'"parameters":[' + items[:-1] + b"]")))


@pytest.mark.parametrize("printed", ["[]{},:" * 80_000, '"' * 500_000, '{"a": [1, "\\\\", {}]}, ' * 15_000])
def test_a_header_of_long_logs_is_read(printed: str) -> None:
    logs = json.dumps({"stdout": printed, "stderr": "", "truncated": False}).encode()
    (found,) = FrameDecoder().feed(frame(b'"logs":' + logs))
    assert found.header["logs"]["stdout"] == printed


def test_only_the_first_parameters_of_code_are_read() -> None:
    (found,) = FrameDecoder().feed(frame(b'"parameters":[' + b'"x",' * 10_000 + b'"x"]'))
    loaded = read_loaded(Frame(found.header))
    assert len(loaded.parameters) == 100


async def first_bytes(*pieces: bytes) -> tuple[bytes, bytes | None]:
    """Return what the host reads from a tunnel through which these pieces arrive one by one."""
    tunnel = Tunnel(connected(Mock()), b"", lambda _: None)
    reading = asyncio.create_task(proxy._first_bytes(tunnel))
    for piece in pieces:
        tunnel.feed(piece)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return await reading


def records(message: bytes, size: int) -> list[bytes]:
    """Split a handshake message into TLS records."""
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return [b"\x16\x03\x01%b%b" % (len(part).to_bytes(2), part) for part in parts]


@pytest.mark.parametrize("size", [1, 7, 900])
async def test_a_hello_in_several_records_is_read(size: int) -> None:
    hello = b"\x01" + (800).to_bytes(3) + bytes(800)
    data = b"".join(records(hello + b"rest", size))
    for step in (1, 5, 100, len(data)):
        got, found = await first_bytes(*(data[at : at + step] for at in range(0, len(data), step)))
        assert found == hello
        assert data.startswith(got)


async def test_a_hello_in_many_records_is_read_only_once() -> None:
    hello = b"\x01" + (2500).to_bytes(3) + bytes(2500)
    began = time.thread_time()
    assert (await first_bytes(*records(hello, 1)))[1] == hello
    assert time.thread_time() - began < 5 * held_s()


async def test_a_hello_without_an_end_is_refused() -> None:
    with pytest.raises(Rejected, match="too long"):
        await first_bytes(*records(b"\x01\xff\xff\xff" + bytes(4000), 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("left_after", [0, 1, 7])
async def test_frames_for_connections_let_other_tasks_run(left_after: int) -> None:
    flood = encode({"type": "bytes", "connection": 1}) * 6400
    link = Mock(drain=AsyncMock(), read=AsyncMock(side_effect=[flood + encode({"type": "result"}) * 2]))
    sandbox = Sandbox(link, backend="bubblewrap", spec=Mock(memory_mb=64), grace_s=1.0)
    if left_after:
        reading = asyncio.create_task(sandbox._fill(600.0, Mock()))
        for _ in range(left_after):
            await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert await turns_during(sandbox._fill(600.0, Mock())) > 90
    assert (len(sandbox._frames), link.write.call_count) == (2, 6400)
