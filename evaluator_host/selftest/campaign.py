"""Runs attacks against one deployment, several at a time, and reports: each one, and what is left after all of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_host.config.settings import SandboxChoice, Settings
from evaluator_host.model.errors import Misconfigured, SandboxUnavailable
from evaluator_host.selftest import remains
from evaluator_host.selftest.attack import Attack
from evaluator_host.selftest.bait import Bait, laid_out
from evaluator_host.selftest.trial import Tried, Verdict, neighbour_problems, try_attack
from evaluator_host.service import Service
from evaluator_host.wiring.service import choose_backend, open_service

_ENGINE: Final = "unix:///var/run/docker.sock"  # where docker-py looks when nothing is said
_MORE_MEMORY_MB: Final = 192.0
# What the host may grow by: buffers of frames, of which the greatest are 64 MiB. A guest's gigabyte is not among them.
_LOAD_TIMEOUT_S: Final = 5.0  # some attacks hang while they load; honest ones of the catalogue take milliseconds
_SETTLED_S: Final = 10.0  # an engine under load takes seconds to remove a container
_POLL_S: Final = 0.2
_TIMES_ALONE: Final = 2  # for an attack after which time ran out while others kept the machine busy


@dataclass(frozen=True, slots=True)
class Report:
    """What became of every attack.

    Attributes:
      backend: Name of the sandbox backend.
      tried: In the catalogue's order.
      host: What is wrong with the host after all of them.
    """

    backend: str
    tried: tuple[Tried, ...]
    host: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every attack was stopped and the host is as it was."""
        return not self.host and all(one.verdict is Verdict.STOPPED for one in self.tried)


async def attack_deployment(
    settings: Settings,
    attacks: Sequence[Attack],
    *,
    at_once: int,
    progress: Callable[[Tried], None] = lambda _tried: None,
    again: int = _TIMES_ALONE,
) -> Report:
    """Start a host of its own with these settings, attack it, and end it.

    Args:
      settings: Of the deployment.
      attacks: Which.
      at_once: How many at a time.
      progress: Called with each verdict, in the order in which they come.
      again: How often one after which only time ran out is tried once more, alone.

    Raises:
      SandboxUnavailable: no sandbox can be started.
    """
    started = time.monotonic()
    settings = await _settled_on_a_backend(settings)
    settings = settings.model_copy(update={"load_timeout_s": min(settings.load_timeout_s, _LOAD_TIMEOUT_S)})
    engine = (settings.engine_address or _ENGINE) if settings.sandbox is SandboxChoice.DOCKER else None
    before = await asyncio.to_thread(remains.look, engine)
    async with open_service(settings, prewarm=False) as service, laid_out(settings.data_dir, engine=engine) as bait:
        tried = await _attack(service, bait, attacks, at_once=at_once, progress=progress, again=again)
        problems = [problem async for problem in _host_problems(service, bait, before)]
    problems += await _left_behind(before, engine)
    return Report(str(settings.sandbox), tried, tuple(problems), time.monotonic() - started)


async def _settled_on_a_backend(settings: Settings) -> Settings:
    """Return settings that name the backend which `auto` takes."""
    if settings.sandbox is SandboxChoice.NONE:
        raise Misconfigured(
            "sandbox=none has no sandbox to attack: evaluators run as the host's own user; "
            "set EVALUATOR_HOST_SANDBOX to bubblewrap or docker"
        )
    if settings.sandbox is not SandboxChoice.AUTO:
        return settings
    backend = await choose_backend(settings)
    await backend.close()
    return settings.model_copy(update={"sandbox": SandboxChoice(backend.name)})


async def _attack(
    service: Service,
    bait: Bait,
    attacks: Sequence[Attack],
    *,
    at_once: int,
    progress: Callable[[Tried], None],
    again: int,
) -> tuple[Tried, ...]:
    turn = asyncio.Semaphore(at_once)

    async def one(attack: Attack) -> Tried:
        async with turn:
            tried = await try_attack(attack, service, bait)
        if not tried.late:
            progress(tried)
        return tried

    async def alone(tried: Tried) -> Tried:
        if not tried.late:
            return tried
        for _ in range(again):
            tried = await try_attack(tried.attack, service, bait)
            if not tried.late:
                break
        progress(tried)
        return tried

    for language in dict.fromkeys(attack.language for attack in attacks):
        for problem in await neighbour_problems(service, language):  # before any attack
            raise SandboxUnavailable(f"an honest evaluator does not run as it must: {problem}")
    together = await asyncio.gather(*(one(attack) for attack in attacks))
    return tuple([await alone(tried) for tried in together])


async def _host_problems(service: Service, bait: Bait, before: remains.Snapshot) -> AsyncIterator[str]:
    """Yield what is wrong with the host while it still runs."""
    for name in sorted(set(bait.visits)):
        yield f"{bait.visits.count(name)} connections reached the host's listener {name!r}"
    if service.pool.waiting:
        yield f"{service.pool.waiting} calls still wait, though all have been answered"
    now = await asyncio.to_thread(remains.look, None)
    if now.memory_mb > before.memory_mb + _MORE_MEMORY_MB:
        yield f"the host grew from {before.memory_mb:.0f} MB to {now.memory_mb:.0f} MB"


async def _left_behind(before: remains.Snapshot, engine: str | None) -> list[str]:
    """Return what is left after the host has ended; waits for what is on its way out."""
    deadline = time.monotonic() + _SETTLED_S
    while True:
        found = remains.left(before, await asyncio.to_thread(remains.look, engine))
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(_POLL_S)
