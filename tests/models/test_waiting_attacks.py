"""Rows that wait for a model give way to running rows, even if the waiting rows compute or fork."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evaluator_host.engine.service.caller import Caller
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.model_server import ModelServer, Reply
from tests.models.conftest import KEY, Granting, granting_on
from tests.models.judges import ASK, ONE
from tests.processes import seconds_below

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]

BURNS = (
    "import os, signal, threading\n" + ASK + "def evaluate(inputs, outputs, trace):\n"
    "    child = os.fork()\n"
    "    while child == 0:\n"
    "        pass\n"
    "    asking = threading.Thread(target=ask, args=('judge', outputs))\n"
    "    asking.start()\n"
    "    while asking.is_alive():\n"
    "        pass\n"
    "    os.kill(child, signal.SIGKILL)\n"
    "    os.waitpid(child, 0)\n"
    "    return sum(os.times()[:4])\n"
)
WORKS = (
    "import time\n"
    "def evaluate(inputs, outputs, trace):\n"
    "    while time.process_time() < 0.4:\n"
    "        pass\n"
    "    return time.process_time()\n"
)
MANY = """
import json, os, socket, urllib.parse

def evaluate(inputs, outputs, trace):
    place = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    body = json.dumps({"model": "judge", "messages": [{"role": "user", "content": outputs}]})
    head = f"POST /v1/chat/completions HTTP/1.1\\r\\nHost: {place.netloc}\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    asked = [socket.create_connection((place.hostname, place.port)) for _ in range(inputs["requests"])]
    for one in asked:
        one.sendall((head + body).encode())
    return sum(len(one.recv(99)) > 0 for one in asked if inputs["reads"]) / len(asked)
"""


class Held:
    """A provider that answers only when the test releases its answers, except to the question `quick`."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.answer = threading.Event()

    def __call__(self, question: str, attempt: int) -> None:
        self.asked.release()
        assert question == "quick" or self.answer.wait(150)

    async def wait_for(self, requests: int) -> None:
        """Wait until this many more requests have arrived."""
        for _ in range(requests):
            assert await asyncio.to_thread(self.asked.acquire, timeout=100)


@asynccontextmanager
async def held_on(backend: str, folder: Path, **more: object) -> AsyncIterator[tuple[Granting, Held]]:
    held = Held()
    with ModelServer(key=KEY, faults=held, plays_all=True) as server:
        async with granting_on(backend, server, folder, **more) as granting:
            try:
                yield granting, held
            finally:
                held.answer.set()


async def scored(granting: Granting, code: str, *, models: tuple[str, ...] = ()) -> float | None:
    """Score a row for a workspace other than the attacker's, and return the score."""
    evaluator = Evaluator(code, models=models)
    return (await granting.service.evaluate(evaluator, Row({}, "quick"), caller=Caller("neighbour"))).score


def seconds_of_those_that_wait(granting: Granting) -> list[float]:
    """Return how much processor time each sandbox with a waiting row has used so far."""
    links = [slot.sandbox.link for owner in granting.service.pool._evaluator_pools for slot in owner.paused]
    return [sum(seconds for _, seconds in seconds_below(link.first_pid)) for link in links]


def rows_of(count: int, **inputs: object) -> list[Row]:
    return [Row(inputs, f"row {n}") for n in range(count)]


@pytest.mark.long
@pytest.mark.parametrize(("backend", "at_once"), [("bubblewrap", 8), ("docker", 6)])
async def test_rows_that_compute_while_they_wait_give_way_to_those_that_run(
    backend: str, at_once: int, tmp_path: Path
) -> None:
    """Rows that compute while they wait for a model give way to running rows. The waiting rows also fork. Without their
    lower weight, they would take fifteen times as much processor time as the running row.

    The sandbox of the running row starts first, because this test does not measure starts.
    """
    more = {"waiting_rows": at_once, "max_running_sandboxes": 2, "max_timeout_s": 100}
    async with held_on(backend, tmp_path, **more) as (granting, held):
        assert await scored(granting, WORKS)
        evaluator = Evaluator(BURNS, models=("judge",), limits=Limits(timeout_s=100))
        attack = asyncio.create_task(granting.service.evaluate_batch(evaluator, rows_of(at_once)))
        await held.wait_for(at_once)
        # wait until the provider has received all requests
        while len(before := seconds_of_those_that_wait(granting)) < at_once:
            await asyncio.sleep(0.01)
        used = await scored(granting, WORKS)
        after = seconds_of_those_that_wait(granting)
        held.answer.set()
        found = [one.score for one in await attack]
        assert used is not None
        assert len(after) == at_once
        assert sum(after) - sum(before) < 6 * used, (before, after, used)
        assert None not in found
        assert granting.service.pool.capacity.running == 0


@pytest.mark.long
async def test_a_workspace_with_many_requests_leaves_room_for_those_of_others(tmp_path: Path) -> None:
    """A workspace with many requests leaves room for the requests of others.

    The workspace with many requests calls first, and its model never answers.
    """
    async with held_on("bubblewrap", tmp_path, waiting_rows=5, max_running_sandboxes=2) as (granting, held):
        evaluator = Evaluator(MANY, models=("judge",))
        attack = asyncio.create_task(granting.service.evaluate_batch(evaluator, rows_of(5, requests=60, reads=True)))
        await held.wait_for(256)
        assert await scored(granting, ONE, models=("judge",)) == 1.0
        assert not attack.done()
        held.answer.set()
        assert [one.score for one in await attack] == [1.0] * 5


async def test_rows_that_never_read_their_answers_end_and_hold_nothing(tmp_path: Path) -> None:
    answer = Reply(200, b'{"choices": [], "text": "' + b"x" * (3 << 20) + b'"}')
    with ModelServer(key=KEY, faults=lambda _question, _attempt: answer, plays_all=True) as server:
        async with granting_on("bubblewrap", server, tmp_path) as granting:
            evaluator = Evaluator(MANY, models=("judge",))
            rows = [*rows_of(4, requests=12, reads=False), *rows_of(1, requests=1, reads=True)]
            found = await granting.service.evaluate_batch(evaluator, rows)
            assert [one.score for one in found] == [0.0] * 4 + [1.0]
            # wait until the last row has ended; bytes that it did not read are dropped
            while granting.service.pool.capacity.running:
                await asyncio.sleep(0.05)


async def test_a_sandbox_that_is_killed_while_its_row_waits_is_replaced(tmp_path: Path) -> None:
    async with held_on("bubblewrap", tmp_path, waiting_rows=3, max_running_sandboxes=2) as (granting, held):
        scoring = asyncio.create_task(granting.service.evaluate_batch(Evaluator(ONE, models=("judge",)), rows_of(3)))
        await held.wait_for(3)
        # the test kills the sandboxes, as a machine that runs out of memory may do; no caller can do this
        (owner,) = granting.service.pool._evaluator_pools
        for slot in list(owner.paused):
            os.kill(slot.sandbox.link.first_pid, signal.SIGKILL)
        await held.wait_for(3)
        held.answer.set()
        assert [(one.score, one.usage.requests) for one in await scoring] == [(1.0, 2)] * 3
        capacity = granting.service.pool.capacity
        assert (capacity.running, capacity.sandboxes - capacity.leaving) == (0, len(owner.idle))
