"""A task that ends by an exception is started again, and the host says so meanwhile."""

import asyncio
import logging

import pytest

from evaluator_host.model.errors import PartFailed, StoreUnavailable
from evaluator_host.system.supervisor import Supervisor


async def test_a_task_that_fails_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("evaluator_host.system.supervisor.PAUSE_S", 0.01)
    monkeypatch.setattr("evaluator_host.system.supervisor._STEADY_S", 0.1)
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
