"""A sandbox pool with runners in memory, and functions that the tests of the pool share."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from evaluator_host.engine.environments.record import empty_environment
from evaluator_host.engine.pool import Lease, LeaseRequest, Pool, PoolLimits
from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.types.evaluator import Contract, Language, Limits, Policy, SandboxSpec
from tests.fake_runner import FakeBackend

SPEC = SandboxSpec(Language.PYTHON, empty_environment(Language.PYTHON))
LOAD = LoadRequest("ok", Language.PYTHON, Contract.AUTO, None, Policy.NONE, Limits(), 5.0)


def request(digest: str = "a", *, workspace: str = "w", code: str = "ok") -> LeaseRequest:
    return LeaseRequest(workspace, digest, SPEC, replace(LOAD, code=code))


def row(word: str) -> bytes:
    return json.dumps({"args": [{}, word, None]}).encode()


@asynccontextmanager
async def opened(**limits: object) -> AsyncIterator[tuple[Pool, FakeBackend]]:
    backend = FakeBackend()
    pool = Pool(backend, replace(PoolLimits(idle_sandboxes=0, grace_s=0.05), **limits))
    try:
        yield pool, backend
    except BaseException:
        await pool.close()
        raise
    else:
        await pool.close()
        assert backend.alive == 0, "a closed pool must leave no sandbox"
        assert (pool.capacity.sandboxes, pool.capacity.taken_mb) == (0, 0)


async def leased(pool: Pool, which: LeaseRequest) -> Lease:
    answer = await pool.lease_sandbox(which)
    assert isinstance(answer, Lease)
    return answer


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not reached():
            await asyncio.sleep(0)
