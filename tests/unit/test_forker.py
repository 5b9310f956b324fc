"""Worker processes answer calls, and end with the host. As in a host, the forker starts before the event loop."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator

import pytest

from evaluator_host.engine.system.forker import Channel, ChannelClosed, Forker, ForkerEnded
from evaluator_host.types.errors import Busy, HostError


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    made = Forker()
    yield made
    made.close()


def worker(end: socket.socket, word: str) -> None:
    """The program of a worker process, which answers calls until the test ends."""

    async def answer(name: str, args: tuple[int, ...]) -> object:
        match name:
            case "add":
                return word, sum(args)
            case "refuse":
                raise Busy("come back", retry_after_s=3.5)
            case "fail":
                raise ZeroDivisionError
            case "sleep":
                await asyncio.sleep(60)
        return None

    async def run() -> None:
        await (await Channel(answer).over(end)).ended.wait()

    asyncio.run(run())


async def nothing(_: str, __: tuple[object, ...]) -> None:
    return None


async def test_calls_answers_errors_and_the_end(forker: Forker) -> None:
    pid, end = await forker.fork(worker, "sum")
    channel = await Channel(nothing).over(end)
    running = asyncio.create_task(channel.ended.wait())
    assert await asyncio.gather(*(channel.call("add", n, 1) for n in range(50))) == [("sum", n + 1) for n in range(50)]
    with pytest.raises(Busy) as busy:
        await channel.call("refuse")
    assert (busy.value.detail, busy.value.retry_after_s) == ("come back", 3.5)
    with pytest.raises(HostError, match="the host has an internal fault"):
        await channel.call("fail")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(channel.call("sleep"), 0.05)
    assert not channel._waiting
    asleep = asyncio.create_task(channel.call("sleep"))
    await asyncio.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ChannelClosed):
        await asleep
    await running
    with pytest.raises(ChannelClosed):
        await channel.call("add", 1)


async def test_workers_outlive_the_process_that_forked_them_and_end_with_the_host() -> None:
    forker = await asyncio.to_thread(Forker)
    pid, end = await forker.fork(worker, "sum")
    channel = await Channel(nothing).over(end)
    running = asyncio.create_task(channel.ended.wait())
    os.kill(forker.pid, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, forker.pid, os.WEXITED | os.WNOWAIT)
    assert await channel.call("add", 1, 2) == ("sum", 3)
    os.kill(pid, signal.SIGSTOP)  # the kernel ends the process even if it hangs
    forker.close()
    await asyncio.wait_for(running, 10)
    with pytest.raises(ForkerEnded):
        await forker.fork(worker, "sum")
