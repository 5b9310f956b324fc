"""Rows that wait for a model run beside each other, each in a sandbox of its own."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.model.evaluator import Evaluator, Limits, Row
from tests.model_server import ModelServer
from tests.models.conftest import KEY, granting_on
from tests.models.test_gateway import ONE

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]


async def test_rows_wait_for_a_model_beside_each_other(tmp_path: Path) -> None:
    def slow(question: str, attempt: int) -> float:
        return 3.0

    limits = Limits(memory_mb=64)
    with ModelServer(key=KEY, faults=slow, plays_all=True) as server:
        more = {"sandbox_memory_mb": 2048, "waiting_rows": 24, "max_running_sandboxes": 2}
        async with granting_on("bubblewrap", server, tmp_path, **more) as granting:
            evaluator = Evaluator(ONE, models=("judge",), limits=limits)
            rows = [Row({}, f"row {n}") for n in range(24)]
            found = await granting.service.evaluate_batch(evaluator, rows)
            assert [one.score for one in found] == [1.0] * 24
            assert 4 < server.busiest <= 24  # 2 would be all where waiting rows kept others out
            pool = granting.service.pool
            assert (pool.capacity.running, pool.capacity.sandboxes <= 24) == (0, True)
            alone = replace(evaluator, limits=Limits(memory_mb=1024))  # two of these are all the memory
            server.busiest = 0
            found = await granting.service.evaluate_batch(alone, rows[:6])
            assert [one.score for one in found] == [1.0] * 6
            assert server.busiest <= 2
