"""A task that ends with an exception is started again; until then, the host reports the exception."""

import asyncio
import logging
import os

import pytest

from evaluator_host.engine.sandbox.linux.watchdog import Over, Watch, Watchdog
from evaluator_host.engine.system.supervisor import Supervisor
from evaluator_host.types.errors import PartFailed, StoreUnavailable


async def test_a_task_that_fails_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("evaluator_host.engine.system.supervisor.PAUSE_S", 0.01)
    monkeypatch.setattr("evaluator_host.engine.system.supervisor._STEADY_S", 0.1)
    supervisor, ends = Supervisor(), [RuntimeError("first"), RuntimeError("second")]
    failed, working = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        if ends:
            failed.set()
            raise ends.pop()
        working.set()
        await asyncio.Event().wait()

    supervisor.require_working()
    async with supervisor.running("the work", work), asyncio.timeout(10):
        await failed.wait()
        await asyncio.sleep(0)
        with pytest.raises(PartFailed, match="the work"):
            supervisor.require_working()
        await working.wait()
        assert supervisor.restarts == 2
        await asyncio.sleep(0.15)
        supervisor.require_working()
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert all("the work has failed" in record.message for record in caplog.records)


async def test_a_check_that_fails_is_what_the_host_says() -> None:
    def refuse() -> None:
        raise StoreUnavailable("gone")

    supervisor = Supervisor()
    supervisor.checks.append(refuse)
    with pytest.raises(StoreUnavailable):
        supervisor.require_working()


async def test_a_watchdog_that_fails_measures_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator_host.engine.system.supervisor.PAUSE_S", 0.01)
    killed, faults = asyncio.Event(), [OSError("a fault of the kernel's files")]
    watch = Watch(os.getpid(), memory_bytes=1, processes=1, kill=killed.set)

    def measured(_: Watch) -> Over:
        if faults:
            raise faults.pop()
        return Over.MEMORY

    monkeypatch.setattr(Watch, "measure", measured)
    supervisor = Supervisor()
    watchdog = Watchdog(supervisor)
    watchdog.start_watching(watch)
    async with asyncio.timeout(10):
        await killed.wait()
    assert supervisor.restarts == 1
    watchdog.stop_watching(watch)
