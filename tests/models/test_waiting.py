"""Rows that wait for a model can all run at the same time, each in its own sandbox."""

import asyncio
import threading
from pathlib import Path

import pytest

from evaluator_host.engine.pool.fair_share import Capacity
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.model_server import ModelServer
from tests.models.conftest import KEY, granting_on
from tests.models.judges import ONE

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("backend", "at_once"), [("bubblewrap", 10), ("docker", 6)])
async def test_waiting_rows_hold_neither_places_nor_memory(backend: str, at_once: int, tmp_path: Path) -> None:
    """Rows that wait for a model occupy neither slots nor memory. The provider answers only when all rows wait for it;
    the memory limits of two rows already add up to all memory.
    """
    together = threading.Barrier(at_once)

    def when_all_ask(question: str, attempt: int) -> None:
        together.wait(150)

    with ModelServer(key=KEY, faults=when_all_ask, plays_all=True) as server:
        more = {"sandbox_memory_mb": 2048, "waiting_rows": at_once, "max_running_sandboxes": 2}
        async with granting_on(backend, server, tmp_path, **more) as granting:
            evaluator = Evaluator(ONE, models=("judge",), limits=Limits(memory_mb=1024))
            rows = [Row({}, f"row {n}") for n in range(at_once)]
            capacity = granting.service.pool.capacity
            ran: set[int] = set()
            watching = asyncio.create_task(_watch(capacity, ran))
            found = await granting.service.evaluate_batch(evaluator, rows)
            watching.cancel()
            assert [one.score for one in found] == [1.0] * at_once
            assert server.busiest == at_once
            assert max(ran) <= 2  # the limit on running rows also holds when all rows have their answers
            assert capacity.running == 0


async def _watch(capacity: Capacity, ran: set[int]) -> None:
    while True:
        ran.add(capacity.running)
        await asyncio.sleep(0.01)
