"""Two hosts with one database read the records of Daytona's sandboxes: neither runs a script in a sandbox that the
other has deleted.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.platform.store.secrets import SecretBox
from evaluator_host.platform.store.store import open_store
from evaluator_host.types.errors import NotFound
from evaluator_host.vendors.daytona.entities import Records, SandboxRecord

WORKSPACE = "default"


@pytest.fixture
async def hosts(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[Records, Records]]:
    async with open_store(database_url, tmp_path) as first, open_store(database_url, tmp_path) as second:
        box = SecretBox(None, tmp_path)
        yield Records(first.database, box), Records(second.database, box)


async def leased(records: Records, *, env: dict[str, str] | None = None) -> SandboxRecord:
    """Return the record of a sandbox in which several scripts have run; from the second script on, it is leased."""
    made = await records.create(WORKSPACE, {"env": env or {}, "name": "named"})
    for _ in range(3):
        await records.lease(WORKSPACE, made.id)
    return made


@pytest.mark.long
async def test_no_script_starts_after_the_deletion_of_its_sandbox_is_answered(hosts: tuple[Records, Records]) -> None:
    deleting, running = hosts
    for number in range(5):
        made = await leased(running, env={"A": str(number)})
        begun: list[float] = []

        async def scripts(made: SandboxRecord = made, begun: list[float] = begun) -> None:
            while True:
                at = time.monotonic()
                assert (await running.lease(WORKSPACE, made.id)).env == made.env
                begun.append(at)
                await asyncio.sleep(0)

        hammering = asyncio.create_task(scripts())
        await asyncio.sleep(0.02 * number)
        await deleting.delete(made)
        answered = time.monotonic()
        with pytest.raises(NotFound, match="not found"):
            await running.lease(WORKSPACE, made.id)
        with pytest.raises(NotFound):
            await hammering
        assert begun
        assert max(begun) <= answered


async def test_a_lease_saves_reads_and_sees_installed_packages(hosts: tuple[Records, Records]) -> None:
    installing, running = hosts
    made = await leased(running)
    found = [await running.lease(WORKSPACE, made.id) for _ in range(50)]
    assert len({id(one) for one in found}) < 50
    await installing.add_packages(made, "python", ["six==1.17.0"])
    assert (await running.lease(WORKSPACE, made.id)).packages == {"python": ("six==1.17.0",)}
    await installing.add_packages(made, "python", ["six==1.17.0", "idna==3.10"])
    assert (await running.lease(WORKSPACE, "named")).packages == {"python": ("six==1.17.0", "idna==3.10")}


async def test_a_sandbox_of_one_script_is_deleted_at_once(
    hosts: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox that runs only one script is deleted at once, as Agenta's are: Agenta makes a sandbox for each
    evaluation and runs one script in it.
    """
    deleting, running = hosts
    once, often = await running.create(WORKSPACE, {}), await leased(running)
    await running.lease(WORKSPACE, once.id)
    waited: list[float] = []
    here, sleep = asyncio.current_task(), asyncio.sleep

    async def note(delay: float) -> None:
        if asyncio.current_task() is here:
            waited.append(delay)
        else:  # a host of another test sleeps
            await sleep(delay)

    monkeypatch.setattr(asyncio, "sleep", note)
    for _ in range(2):
        await deleting.delete(once)
    assert waited == []
    await deleting.delete(often)
    assert len(waited) == 1
    with pytest.raises(NotFound):
        await deleting.get(WORKSPACE, often.id)


async def test_a_record_that_is_deleted_while_it_is_leased_is_not_found(
    hosts: tuple[Records, Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease finds no record that is deleted after the lease has read it and before the lease has marked it."""
    deleting, running = hosts
    made = await running.create(WORKSPACE, {})
    await running.lease(WORKSPACE, made.id)
    read = running._fetch

    async def read_then_deleted(workspace: str, name: str) -> str:
        text = await read(workspace, name)
        await deleting.delete(made)
        return text

    monkeypatch.setattr(running, "_fetch", read_then_deleted)
    with pytest.raises(NotFound):
        await running.lease(WORKSPACE, made.id)
