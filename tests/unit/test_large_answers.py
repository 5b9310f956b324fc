"""Only a few large answers of models are in memory at a time, no workspace can take all memory, and a row gets answers
as fast as it reads them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import httpx
import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.service.model_grants import ModelTerms, RequestUse
from evaluator_host.engine.system.turns import Turns
from evaluator_host.platform.models.gateway.connection import BODY_BYTES, Connection
from evaluator_host.platform.models.gateway.exchange import Exchange, Told
from evaluator_host.platform.models.gateway.gateway import Gateway, Grant
from evaluator_host.platform.models.gateway.grants import GrantedModel
from evaluator_host.platform.models.gateway.protocols import route_of
from evaluator_host.platform.models.gateway.recordings import HttpAnswer
from evaluator_host.platform.models.judges import Judges
from evaluator_host.types.evaluator import Evaluator, Replay
from evaluator_host.types.json_values import LARGE_BYTES
from evaluator_host.types.models import RegisteredModel
from evaluator_host.types.redaction import Redactor

ANSWER = b'{"text": "' + b"a" * (4 << 20) + b'"}'
CHUNK = 64 << 10
MODEL = GrantedModel(RegisteredModel(name="m", url="http://model/v1", model="m"), None)
PLACES, MOST_OF_ONE = 4, 3


class Reader(asyncio.Event):
    """A stand-in for the connection to a sandbox; it accepts bytes when the event is set."""

    def __init__(self) -> None:
        super().__init__()
        self.got = bytearray()
        self.queued = self.most_queued = 0
        self.ended = False

    def reply(self, connection: int, data: bytes, *, end: bool = False) -> None:
        assert connection == 1
        self.got += data
        self.queued += len(data)
        self.most_queued = max(self.queued, self.most_queued)
        self.ended |= end

    async def drain(self) -> None:
        await self.wait()
        self.queued = 0
        await asyncio.sleep(0)


class Provider(httpx.AsyncByteStream):
    """The body of a provider's answer, which counts how many of its bytes were read."""

    def __init__(self) -> None:
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(ANSWER), CHUNK):
            self.read += min(CHUNK, len(ANSWER) - at)
            yield ANSWER[at : at + CHUNK]
            await asyncio.sleep(0)


async def nothing(_: object = None) -> None:
    pass


def connected(reader: Reader) -> Connection:
    return Connection(1, reader, serve=lambda *_: None, refuse=lambda *_: None, room=lambda _: True)


async def ask(workspace: str, places: Turns, reader: Reader, body: Provider) -> None:
    def used(_: RequestUse) -> None: ...
    async def answered(_: HttpAnswer) -> None: ...

    told = Told(used, answered, nothing, partial(places.turn, workspace), records=False)
    route = route_of("/v1/chat/completions")
    assert route is not None
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=body))
    async with httpx.AsyncClient(transport=transport) as client:
        await Exchange(lambda _: nullcontext(client), MODEL, route, headers={}, body={}, told=told).run(
            connected(reader)
        )


async def test_few_large_answers_are_in_memory_and_a_workspace_leaves_a_place() -> None:
    places = Turns(PLACES, per_free=3)
    slow = [(Reader(), Provider()) for _ in range(10)]
    asked = [asyncio.create_task(ask("alpha", places, *one)) for one in slow]
    while sum(bool(reader.got) for reader, _ in slow) < MOST_OF_ONE:  # the slow readers stop after their first bytes
        await asyncio.sleep(0.01)
    fast, body = Reader(), Provider()
    fast.set()
    await ask("beta", places, fast, body)
    assert fast.got.endswith(ANSWER)
    assert fast.most_queued < 2 * CHUNK, "the host may pass on more only when the sandbox has read"
    small = [body.read <= LARGE_BYTES + CHUNK for _, body in slow]
    assert small.count(False) == MOST_OF_ONE
    for reader, _ in slow:
        reader.set()
    await asyncio.gather(*asked)
    assert all(reader.got.endswith(ANSWER) and reader.ended for reader, _ in slow)


def test_processes_of_a_host_divide_what_models_may_be_asked_at_once(tmp_path: Path) -> None:
    def places(workers: int) -> tuple[int, int]:
        settings = Settings(data_dir=tmp_path, workers=workers)
        gateway = Gateway(settings, None)
        return gateway.turns._slots, Judges(settings, None)._turns._slots

    assert (places(1), places(2), places(64)) == ((341, 32), (171, 16), (6, 1))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
async def test_an_answer_is_whole_whatever_its_size(size: int) -> None:
    reader = Reader()
    reader.set()
    await connected(reader).answer(200, [], b"x" * size)
    head, _, body = bytes(reader.got).partition(b"\r\n\r\n")
    assert (f"content-length: {size}".encode() in head, len(body), reader.ended) == (True, size, True)


async def test_bodies_of_requests_that_a_row_gave_up_count_no_more(tmp_path: Path) -> None:
    gateway = Gateway(Settings(data_dir=tmp_path, max_model_requests=64), None)
    grant = Grant(gateway, Evaluator(""), "alpha", {}, [], ModelTerms(Replay.OFF), Redactor())
    gate, reader = grant.gate(), Reader()
    gate.open(reader)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode()
    for _ in range(10):
        gate.receive(1, head, end=False)
        for _ in range(BODY_BYTES // CHUNK - 1):
            gate.receive(1, bytes(CHUNK), end=False)
        gate.receive(1, b"", end=True)
    assert reader.got == b"", "no request may be refused"
