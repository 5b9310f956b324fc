"""Threads are shared: one workspace's work never waits until the work of another workspace ends."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from evaluator_host.engine.system.threads import SharedThreads, work_for
from evaluator_host.platform.http.auth.access import set_caller
from evaluator_host.platform.http.auth.keyring import KeyHolder

THREADS = 6


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


async def in_threads(workspace: str, work: threading.Event | None, count: int) -> None:
    set_caller({}, KeyHolder(workspace))
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(asyncio.to_thread(work.wait if work else threading.get_ident))


async def test_work_runs_while_another_workspace_fills_its_threads(released: threading.Event) -> None:
    asyncio.get_running_loop().set_default_executor(SharedThreads(THREADS))
    hoarding = asyncio.create_task(in_threads("hoarder", released, 10 * THREADS))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await in_threads("other", None, 3)
        assert not hoarding.done()
        released.set()
        await hoarding


async def test_a_workspace_waits_for_its_own_work_and_every_piece_is_done(released: threading.Event) -> None:
    asyncio.get_running_loop().set_default_executor(SharedThreads(THREADS))
    running, most, changing = 0, 0, threading.Lock()
    full = threading.Event()

    def counted() -> None:
        nonlocal running, most
        with changing:
            running += 1
            most = max(most, running)
            if running == THREADS // 2:
                full.set()
        released.wait()
        with changing:
            running -= 1

    work_for("one")
    done = asyncio.gather(*(asyncio.to_thread(counted) for _ in range(5 * THREADS)))
    await asyncio.sleep(0)
    while not full.is_set():
        await asyncio.sleep(0.001)
    released.set()
    async with asyncio.timeout(60):
        await done
    assert most == THREADS // 2


async def test_errors_and_cancelled_work_leave_the_threads_usable(released: threading.Event) -> None:
    asyncio.get_running_loop().set_default_executor(SharedThreads(2))
    blocked = asyncio.create_task(in_threads("one", released, 1))
    work_for("one")
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(asyncio.gather(asyncio.to_thread(lambda: 1 // 0), _released_soon(released)), 60)
    await blocked
    waiting = asyncio.create_task(in_threads("one", None, 3))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 60) == 7


async def _released_soon(released: threading.Event) -> None:
    released.set()
