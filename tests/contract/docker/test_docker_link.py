"""The channel to a Docker backend's sandbox loses no data, has a size limit, and is separate from standard error."""

import asyncio
import json
import os

from evaluator_host.engine.sandbox.docker.attach import PAUSE_BYTES
from evaluator_host.engine.sandbox.protocol import encode
from tests.docker_guests import Guest


async def test_large_frames_pass_whole_in_both_directions(guest: Guest) -> None:
    text = os.urandom(3 << 20).hex()
    guest.link.write(encode({"type": "run", "text": text[:1000]}, f"answer = {text!r}[::-1]".encode()))
    await guest.link.drain()
    frame = await guest.frame()
    assert frame is not None
    assert json.loads(frame.body) == text[::-1]


async def test_a_guest_that_floods_an_unread_channel_is_blocked_not_buffered(guest: Guest) -> None:
    wanted = 40 << 20
    guest.link.write(encode({"type": "run"}, b"for _ in range(40): send({'type': 'flood'}, b'x' * (1 << 20))"))
    previous = -1
    while guest.link._channel.inbox._unread != previous or previous == 0:
        previous = guest.link._channel.inbox._unread
        await asyncio.sleep(0.3)
    assert PAUSE_BYTES <= previous < 2 * PAUSE_BYTES
    got = 0
    while got < wanted:
        frame = await guest.frame()
        assert frame is not None
        got += len(frame.body)
    assert got == wanted


async def test_standard_error_is_kept_apart_and_only_its_tail(guest: Guest) -> None:
    assert (
        await guest.run("import sys; print('x' * 100_000 + 'last words', file=sys.stderr, flush=True); answer = 1") == 1
    )
    assert await guest.run("import os; os._exit(7)") is None
    exit_status = await guest.link.destroy()
    assert exit_status.stderr_tail.endswith("xxxlast words\n")
    assert len(exit_status.stderr_tail) == 8192
    assert (exit_status.exit_code, exit_status.signal, exit_status.lost) == (7, None, False)


async def test_after_the_end_reading_says_so_and_writing_is_silent(guest: Guest) -> None:
    assert not guest.link.ended
    assert await guest.run("import os; os._exit(0)") is None
    assert guest.link.ended
    guest.link.write(b"x" * (4 << 20))
    async with asyncio.timeout(5):
        await guest.link.drain()
    assert await guest.link.read() == b""
