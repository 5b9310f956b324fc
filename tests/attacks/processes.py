"""Runs attacks over HTTP on a host with several processes. On such a host, the process that gets a call may pass the
call on to the process that has the sandbox.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.sandbox.linux.watchdog import read_text
from evaluator_host.selftest.attack import Attack, Expected, Group
from evaluator_host.selftest.canaries import Canaries, placed_canaries
from evaluator_host.selftest.host import attack_host
from evaluator_host.selftest.runner import SelftestReport, run_attacks
from evaluator_host.selftest.trial import NEIGHBOUR
from evaluator_host.types.outcome import Status
from tests.attacks.weakened import LOAD_TIMEOUT_S
from tests.left_behind import until_nothing_is_left
from tests.over_http import Host, calling_processes, served

_ATTACKER = "selftest"
_MORE_MEMORY_MB = 192
_OVER_HTTP = {"half-a-character": (Expected(Status.SCORED, 0.25),)}
"""Attacks that end in another way over HTTP, because decoding JSON replaces half a character with a question mark."""
_LIMITS = {"load_timeout_s": LOAD_TIMEOUT_S, "idle_ttl_s": 5.0}


async def attack_processes(own: Settings, attacks: Sequence[Attack], folder: Path, *, at_once: int) -> SelftestReport:
    """Run attacks as `attack_deployment` does, but on a host with several processes.

    Args:
      own: Settings of the deployment. The host with several processes uses only the backend in these settings.
      folder: A new folder for the host's data.

    Raises:
      AssertionError: the host left something behind when it ended.
    """
    sent = [replace(one, expected=_OVER_HTTP.get(one.name, one.expected)) for one in attacks]
    results = await _attack_evaluators(own, [one for one in sent if one.group is not Group.HOST], folder, at_once)
    on_host = [one for one in attacks if one.group is Group.HOST]
    if not on_host:
        return results
    more, problems = await attack_host(own, on_host, progress=lambda _: None)
    return SelftestReport(results.backend, (*results.results, *more), (*results.host, *problems), results.seconds)


async def _attack_evaluators(own: Settings, attacks: Sequence[Attack], folder: Path, at_once: int) -> SelftestReport:
    backend = str(own.sandbox)
    async with placed_canaries(own.data_dir, engine=own.docker_host) as canaries:
        changes = {**_LIMITS, **_granting(canaries, own)}
        async with served(backend, folder, workspaces=(_ATTACKER, NEIGHBOUR), **changes) as host:
            pid = host.server.process.pid
            canaries.inputs |= {"pid": pid, "command": _hash_of_command(pid)}
            before = _memory_mb(host)
            results = await run_attacks(
                host,  # type: ignore[arg-type] # a `Host` has the methods of `Service` that are called here
                canaries,
                attacks,
                at_once=at_once,
                progress=lambda _: None,
                again=2,
            )
            problems = [f"connections reached the listener {name!r}" for name in sorted(set(canaries.visits))]
            problems += _harm(host, before)
            assert await asyncio.to_thread(host.server.stop) == 0, host.server.log
    await asyncio.to_thread(until_nothing_is_left, pid, docker=None if own.docker_host else [])
    return SelftestReport(backend, results, tuple(problems), 0.0)


def _granting(canaries: Canaries, own: Settings) -> dict[str, Any]:
    """Convert the settings from `Canaries.granting` to environment variables."""
    granted = canaries.granting(own)
    models = {name: {"base_url": one.base_url, "key": canaries.secret} for name, one in granted.models.items()}
    return {
        "models": json.dumps(models),
        "network_hosts": granted.network_hosts,
        "network_private": granted.network_private,
    }


def _hash_of_command(pid: int) -> str:
    return hashlib.sha256(Path(f"/proc/{pid}/cmdline").read_bytes()).hexdigest()


def _memory_mb(host: Host) -> dict[int, float]:
    pids = [host.server.process.pid, *calling_processes(host.server)]
    return {pid: int(read_text(f"/proc/{pid}/status").split("VmRSS:")[1].split()[0]) / 1024 for pid in pids}


def _harm(host: Host, before: Mapping[int, float]) -> list[str]:
    """Return the signs of damage to a running host; `before` is each process's memory before the attacks, in MB."""
    now = _memory_mb(host)
    problems = [line for line in host.server.log.splitlines() if "a process of" in line and "was lost" in line]
    problems += [
        f"process {pid} of the host grew from {before[pid]:.0f} MB to {now[pid]:.0f} MB"
        for pid in now.keys() & before.keys()
        if now[pid] > before[pid] + _MORE_MEMORY_MB
    ]
    if waiting := host.waiting():
        problems.append(f"{waiting:g} calls still wait, though all have been answered")
    if "Traceback" in host.server.log:
        problems.append(host.server.log[-2000:])
    return problems
