"""Each look-up of a host name for a caller has a time limit, workspaces share the threads, and a thread counts as busy
until its look-up returns.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from evaluator_host.engine.system.lookups import LookupFailed, Lookups, written_address


class Servers:
    """A resolver that answers look-ups of names that begin with `slow` only when `release` is set."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.asked: list[str] = []
        self.at_once = 0

    def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host.startswith("slow"):
            self.at_once += 1
            self.release.wait(30)
            self.at_once -= 1
        if host.startswith("no"):
            raise socket.gaierror(-2, "Name or service not known")
        return [] if host.startswith("empty") else ["192.0.2.1", "192.0.2.1", "192.0.2.2"]


@pytest.fixture
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.release.set()


async def failure(names: Lookups, host: str, workspace: str) -> LookupFailed:
    with pytest.raises(LookupFailed) as failed:
        await names.look_up(host, 80, workspace=workspace)
    return failed.value


async def test_slow_names_of_some_workspaces_delay_nobody_else(servers: Servers) -> None:
    names = Lookups(servers.resolve, limit_s=1)
    flood = [
        asyncio.create_task(failure(names, f"slow{number}.{workspace}", workspace))
        for workspace in ("alpha", "gamma", "delta")
        for number in range(12)
    ]
    await asyncio.sleep(0.05)
    for _ in range(2):  # first while the callers wait, then when the callers have given up but their threads have not
        assert await names.look_up("quick.beta", 80, workspace="beta") == ["192.0.2.1", "192.0.2.2"]
        assert servers.at_once <= 12
        failed = await asyncio.gather(*flood)
    told = {str(one).replace(str(one).split()[0], "X", 1) for one in failed}
    assert all(one.slow for one in failed)
    assert "X name server of slow0.alpha did not answer within 1 s" in told
    assert any("4 other names that this workspace looks up" in one for one in told)


async def test_threads_count_until_they_are_free_and_serve_again_then(servers: Servers) -> None:
    names = Lookups(servers.resolve, limit_s=0.1)
    await asyncio.gather(*(failure(names, f"slow{number}", "alpha") for number in range(4)))
    late = await failure(names, "quick", "alpha")
    assert "the host still waits for the name servers of 4 other names that this workspace looks up" in str(late)
    assert servers.asked.count("quick") == 0
    servers.release.set()
    async with asyncio.timeout(5):
        while servers.at_once:
            await asyncio.sleep(0.005)
    assert await names.look_up("quick", 80, workspace="alpha")


async def test_a_full_queue_is_blamed_on_the_right_workspace(servers: Servers) -> None:
    names = Lookups(servers.resolve, limit_s=0.2)
    flood = [failure(names, f"slow{n}.{space}", space) for space in "abcdefghijklmnop" for n in range(4)]
    told, ours = await asyncio.gather(asyncio.gather(*flood), failure(names, "quick", "z"))
    assert servers.at_once == 16
    assert "other workspaces look up names whose servers do not answer; try again" in str(ours)
    assert any("did not answer within" in str(one) for one in told)


async def test_a_caller_that_leaves_takes_its_place_in_the_queue_along(servers: Servers) -> None:
    names = Lookups(servers.resolve, limit_s=30)
    tasks = [asyncio.create_task(names.look_up(f"slow{number}", 80, workspace="alpha")) for number in range(40)]
    await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    servers.release.set()
    assert await names.look_up("quick", 80, workspace="alpha")
    assert len(servers.asked) == 5


async def test_names_without_an_address_say_so(servers: Servers) -> None:
    names = Lookups(servers.resolve)
    told = {"nobody.test": "the address of nobody.test cannot be found: ", "empty.test": "empty.test has no address"}
    for host, message in told.items():
        failed = await failure(names, host, "alpha")
        assert str(failed).startswith(message)
        assert not failed.slow


async def test_addresses_are_not_looked_up(servers: Servers) -> None:
    names = Lookups(servers.resolve)
    for host, address in (
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("::1", "::1"),
        ("2130706433", "127.0.0.1"),
    ):
        assert await names.look_up(host, 80, workspace="alpha") == [address]
    assert not servers.asked
    assert written_address("slow.test") is None
    assert written_address("1.2.3.4.example") is None


def test_each_loop_may_use_them(servers: Servers) -> None:
    names = Lookups(servers.resolve)
    for _ in range(2):
        assert asyncio.run(names.look_up("quick", 80, workspace="alpha"))
