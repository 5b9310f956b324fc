"""A child process that does not answer is named in a message, and killed if it hangs. A process that is only slow is
not killed.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator

import pytest

from evaluator_host.engine.system.forker import Channel, Forker
from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.types.errors import MachineExhausted, PartFailed
from tests.processes import is_running


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator_host.engine.system.child_watch.PERIOD_S", 0.1)


@pytest.fixture
def forker() -> Iterator[Forker]:
    made = Forker()
    yield made
    made.close()


def worker(end: socket.socket) -> None:
    """The program of the child process, which answers until the test ends."""

    async def run() -> None:
        await (await Channel(nothing).over(end)).ended.wait()

    asyncio.run(run())


async def nothing(_: str, __: tuple[object, ...]) -> None:
    return None


async def silence(supervisor: Supervisor) -> str:
    """Wait until a child process does not answer; return the message of `/readyz`."""
    async with asyncio.timeout(30):
        while not supervisor.silent:
            await asyncio.sleep(0.01)
    with pytest.raises(PartFailed) as said:
        supervisor.require_working()
    return said.value.detail


@pytest.mark.long
@pytest.mark.slow
async def test_a_worker_that_hangs_is_named_and_killed(forker: Forker, caplog: pytest.LogCaptureFixture) -> None:
    supervisor = Supervisor()
    pid, end = await forker.fork(worker)
    channel = await Channel(nothing).over(end)
    async with supervisor.watching("the worker", lambda: pid, channel.ping):
        await asyncio.sleep(1.5)
        assert not supervisor.silent
        os.kill(pid, signal.SIGSTOP)
        assert "does not answer, and is replaced if it stays silent: the worker" in await silence(supervisor)
        os.kill(pid, signal.SIGCONT)
        async with asyncio.timeout(30):
            while supervisor.silent:
                await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGSTOP)
        await asyncio.wait_for(channel.ended.wait(), 30)
    supervisor.require_working()
    assert f"the worker (process {pid}) hangs and is killed" in caplog.text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.slow
async def test_a_lost_forker_is_replaced(
    forker: Forker, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the next forker is a new interpreter that imports this module: on a slow machine, that takes more than half a
    # second
    monkeypatch.setattr("evaluator_host.engine.system.child_watch.PERIOD_S", 0.5)
    supervisor, lost = Supervisor(), forker.pid
    async with supervisor.watching("the forker", lambda: forker.pid, forker.ping), asyncio.timeout(60):
        os.kill(lost, number)
        made = await asyncio.gather(*(forker.fork(worker) for _ in range(3)))
        channels = [await Channel(nothing).over(end) for _, end in made]
        await asyncio.gather(*(channel.ping() for channel in channels))
        assert not any(channel.ended.is_set() for channel in channels)
    assert not is_running(lost)
    forker.close()
    async with asyncio.timeout(30):
        await asyncio.gather(*(channel.ended.wait() for channel in channels))
        assert forker._again is not None
        await forker._again.wait()


async def test_a_forker_that_rests_starts_again_for_the_next_worker(
    forker: Forker, caplog: pytest.LogCaptureFixture
) -> None:
    rested = forker.pid
    await forker.rest()
    await forker.rest()
    assert not is_running(rested)
    await forker.ping()
    _, end = await forker.fork(worker)
    channel = await Channel(nothing).over(end)
    await channel.ping()
    assert not channel.ended.is_set()
    forker.close()
    await asyncio.wait_for(channel.ended.wait(), 30)
    assert forker._again is not None
    await forker._again.wait()
    assert not caplog.records


@pytest.mark.long
async def test_a_reader_that_hangs_is_replaced_and_one_that_computes_is_not() -> None:
    supervisor = Supervisor()
    async with LimitedProcesses(most=1, supervisor=supervisor) as processes:
        assert await processes.call("a", sum, range(60_000_000)) == sum(range(60_000_000))
        assert not supervisor.silent
        stopped = asyncio.create_task(processes.call("a", signal.raise_signal, signal.SIGSTOP))
        assert "which reads callers' data" in await silence(supervisor)
        with pytest.raises(MachineExhausted, match="lost twice"):
            await asyncio.wait_for(stopped, 60)
        supervisor.require_working()
        assert await processes.call("a", max, [1, 2]) == 2
