"""One workspace floods a host with slow calls, in real sandboxes; another workspace is still served."""

import asyncio

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.types.errors import Busy
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import settings

SLOW = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(30)\n    return 1.0\n# {number}\n"
FAST = "def evaluate(inputs, outputs, trace):\n    return 1.0\n# {number}\n"


async def call(service: Service, code: str, workspace: str) -> EvaluationResult:
    return await service.evaluate(Evaluator(code, limits=Limits(timeout_s=60)), Row(), caller=Caller(workspace))


async def test_a_flood_of_slow_calls_leaves_sandboxes_and_places_for_others() -> None:
    async with open_engine(settings("bubblewrap", max_sandboxes=4, queue_limit=20), prewarm=True) as service:
        assert (await call(service, FAST.format(number=0), "quiet")).score == 1.0
        flood = [asyncio.create_task(call(service, SLOW.format(number=n), "loud")) for n in range(100)]
        async with asyncio.timeout(60):
            while sum(task.done() for task in flood) < 75 or service.pool.capacity.sandboxes < 3:
                await asyncio.sleep(0.05)  # wait until the host is full and refuses calls
        refused = [task for task in flood if task.done()]
        assert {type(task.exception()) for task in refused} == {Busy}
        for number in range(5):
            assert (await call(service, FAST.format(number=number), "quiet")).score == 1.0
        assert [task for task in flood if task.done()] == refused, "no other call of the flood may be served meanwhile"
        assert service.pool.waiting > 0
        for task in flood:
            task.cancel()
        await asyncio.wait(flood)
