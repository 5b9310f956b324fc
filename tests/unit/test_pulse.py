"""The host repeats a lost request to the engine, and counts how long the engine has been silent."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from evaluator_host.engine.sandbox.docker import pulse
from evaluator_host.engine.sandbox.docker.attach import EngineAddress
from evaluator_host.engine.sandbox.docker.pulse import Pulse

LIMIT_S = 0.1
LOST = 2


async def test_a_lost_question_is_asked_again_and_the_silence_lasts_until_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulse, "_ANSWER_S", LIMIT_S)
    beat, connections, silences = Pulse(), 0, []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        silences.append(beat.silent_s(address))
        if connections > LOST:
            writer.write(b"HTTP/1.0 200 OK\r\n\r\nOK")
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = EngineAddress(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
        assert beat.silent_s(address) == 0
        while beat.silent_s(address) > 0 or connections <= LOST:
            await asyncio.sleep(0.01)
        await beat.stop()
    assert silences[LOST] >= LOST * LIMIT_S, "the silence must be counted from the first request without an answer"


async def test_an_engine_that_is_gone_is_not_silent(tmp_path: Path) -> None:
    beat, address = Pulse(), EngineAddress(path=str(tmp_path / "no-engine"))
    assert beat.silent_s(address) == 0
    while beat.silent_s(address) > 0:
        await asyncio.sleep(0.01)
    await beat.stop()
