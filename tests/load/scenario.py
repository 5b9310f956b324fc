"""The whole load test: a host with keys, five workspaces, and the checks at the end."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.store.opening import open_store
from tests.left_behind import until_nothing_is_left
from tests.load.callers import Group, Tally, call_for
from tests.load.watch import Watch, descriptors
from tests.ordinary_user import UID, host_command
from tests.server import COMMAND, Server
from tests.tools import copy_tools

_SETTLES_S = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: the outcomes of its calls, and what the host used and left behind."""

    tallies: dict[str, Tally]
    watch: Watch
    seconds: float
    descriptors_before: int
    descriptors_after: int
    left_in_data: set[str]

    @property
    def faults(self) -> list[str]:
        return [fault for tally in self.tallies.values() for fault in tally.faults]


def run_load(
    folder: Path, *, backend: str, callers: int, seconds: float, environment: dict[str, str], ordinary: bool = False
) -> Outcome:
    """Start a host, load it with calls, wait until it is at rest, and stop it.

    One workspace floods the host with half of the callers, and three workspaces share the other half; a third of all
    these calls are hostile. The fifth workspace has two callers with only good programs, whose times show whether the
    host is fair.

    Raises:
      AssertionError: the host left something behind.
    """
    data = folder / "data"
    if not data.is_dir():
        copy_tools(data)
    names = ("flood", "one", "two", "three", "quiet")
    keys = asyncio.run(_keys(data, names))
    command = COMMAND
    if ordinary:
        folder.chmod(0o755)
        for path in (data, *data.rglob("*")):
            os.chown(path, UID, UID)
        command = host_command(environment)
    server = Server(
        backend, command=command, log=folder / "host.log", data_dir=data, environment=environment, few_sandboxes=False
    )
    server.client.headers["Authorization"] = f"Bearer {keys['quiet']}"
    with server:
        files, watch = _files(data), Watch(server.process.pid)
        watch.look()
        groups = [
            Group("flood", keys["flood"], callers // 2),
            *(Group(name, keys[name], (callers // 2 - 2) // 3) for name in ("one", "two", "three")),
            Group("quiet", keys["quiet"], 2, hostile_every=0),
        ]
        started = time.monotonic()
        tallies = asyncio.run(_loaded(server.port, groups, watch, seconds=seconds))
        took = time.monotonic() - started
        _until_at_rest(server)
        after = _descriptors_at_rest(server, watch.descriptors[0])
        left = _files(data) - files
        assert server.stop() == 0, server.log
    until_nothing_is_left(server.process.pid, docker=None if backend == "docker" else [])
    return Outcome(tallies, watch, took, watch.descriptors[0], after, left)


async def _loaded(port: int, groups: list[Group], watch: Watch, *, seconds: float) -> dict[str, Tally]:
    watching = asyncio.create_task(watch.run())
    try:
        return await call_for(port, groups, seconds=seconds)
    finally:
        watching.cancel()
        await asyncio.wait([watching])


async def _keys(data: Path, workspaces: Sequence[str]) -> dict[str, str]:
    async with open_store(Settings(data_dir=data)) as store:
        return {name: (await store.keys.create_key("load", name))[1] for name in workspaces}


def _until_at_rest(server: Server) -> None:
    """Wait until no call waits, and no sandboxes are left except idle sandboxes, which end soon."""
    until = time.monotonic() + _SETTLES_S
    while time.monotonic() < until:
        lines = server.client.get("/metrics").text.splitlines()
        gauges = {line.split()[0]: float(line.split()[1]) for line in lines if line.count(" ") == 1}
        if gauges["evaluator_host_queue"] == 0 and gauges["evaluator_host_sandboxes"] == 0:
            return
        time.sleep(0.2)
    raise AssertionError(f"sandboxes or callers are left: {server.log[-2000:]}")


def _descriptors_at_rest(server: Server, wanted: int) -> int:
    """Wait at most 15 s for the host to have no more than `wanted` open descriptors; return how many are open."""
    until = time.monotonic() + 15
    while (found := descriptors(server.process.pid)) > wanted and time.monotonic() < until:
        time.sleep(0.2)
    return found


def _files(data: Path) -> set[str]:
    return {str(path.relative_to(data)) for path in data.rglob("*") if "toolchain" not in path.parts}
