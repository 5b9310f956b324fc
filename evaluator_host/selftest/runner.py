"""Runs attacks against one deployment, several at a time. Reports on each attack, and on leaks afterwards."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_host.engine.backends import choose_backend
from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.system.lookups import Lookups
from evaluator_host.platform.models.judges import open_judges
from evaluator_host.selftest.attack import Attack, Group
from evaluator_host.selftest.canaries import Canaries, placed_canaries
from evaluator_host.selftest.host import attack_host
from evaluator_host.selftest.leak_check import Snapshot, leaks, take_snapshot
from evaluator_host.selftest.trial import AttackResult, AttackVerdict, neighbour_problems, run_attack
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable
from evaluator_host.types.names import counted

_ENGINE: Final = "unix:///var/run/docker.sock"  # the address that docker-py uses by default
# MB by which the host may grow: each of its frame buffers has at most 64 MiB, and a host that read a guest's gigabyte
# would grow more
_MORE_MEMORY_MB: Final = 192.0
_LOAD_TIMEOUT_S: Final = 2.0  # seconds to load code: some attacks hang there, and honest programs take milliseconds
# seconds until an idle sandbox ends: no attack uses it again, and it slows down the search for processes
_IDLE_TTL_S: Final = 5.0
_SETTLED_S: Final = 10.0  # seconds to wait for removals: a busy engine needs several seconds for a container
_POLL_S: Final = 0.2
_TIMES_ALONE: Final = 2  # number of times to repeat an attack alone if it ran out of time beside others


@dataclass(frozen=True, slots=True)
class SelftestReport:
    """The results of every attack.

    Attributes:
      backend: Name of the sandbox backend.
      results: The results, in the catalogue's order.
      host: The problems that the host has after all attacks.
    """

    backend: str
    results: tuple[AttackResult, ...]
    host: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Return whether every attack was stopped and nothing was left on the host."""
        return not self.host and all(one.verdict is AttackVerdict.STOPPED for one in self.results)


async def attack_deployment(
    settings: Settings,
    attacks: Sequence[Attack],
    *,
    at_once: int,
    progress: Callable[[AttackResult], None] = lambda _result: None,
    again: int = _TIMES_ALONE,
) -> SelftestReport:
    """Start a separate host with these settings, run the attacks on it, stop it, and return a report.

    Args:
      settings: Settings of the deployment.
      attacks: Attacks to run.
      at_once: Number of attacks that run at the same time.
      progress: Called with each result as it comes.
      again: How many times an attack is repeated alone if its only problem was a time-out.

    Raises:
      SandboxUnavailable: no sandbox can be started.
    """
    started = time.monotonic()
    settings = await _settled_on_a_backend(settings)
    lower = {"load_timeout_s": _LOAD_TIMEOUT_S, "idle_ttl_s": _IDLE_TTL_S}
    settings = settings.model_copy(update={name: min(getattr(settings, name), most) for name, most in lower.items()})
    engine = (settings.engine_address or _ENGINE) if settings.sandbox is SandboxChoice.DOCKER else None
    before = await asyncio.to_thread(take_snapshot, engine)
    on_host = [attack for attack in attacks if attack.group is Group.HOST]
    attacks = [attack for attack in attacks if attack.group is not Group.HOST]
    async with (
        placed_canaries(settings.data_dir, engine=engine) as canaries,
        open_judges(canaries.granting(settings), None, names=Lookups(canaries.resolve)) as models,
        open_engine(settings, models=models) as service,
    ):
        results = await run_attacks(service, canaries, attacks, at_once=at_once, progress=progress, again=again)
        problems = [problem async for problem in _host_problems(service, canaries, before)]
    problems += await _left_behind(before, engine)
    if on_host:
        more, of_host = await attack_host(settings, on_host, progress=progress)
        results, problems = (*results, *more), [*problems, *of_host]
    return SelftestReport(str(settings.sandbox), results, tuple(problems), time.monotonic() - started)


async def _settled_on_a_backend(settings: Settings) -> Settings:
    """If the backend in the settings is `auto`, replace it with the backend that a host would choose."""
    if settings.sandbox is SandboxChoice.NONE:
        raise Misconfigured(
            "sandbox=none has no sandbox to attack: evaluators run as the host's own user; "
            "set EVALUATOR_HOST_SANDBOX to bubblewrap or docker"
        )
    if settings.sandbox is not SandboxChoice.AUTO:
        return settings
    backend, _ = await choose_backend(settings)
    await backend.close()
    return settings.model_copy(update={"sandbox": SandboxChoice(backend.name)})


async def run_attacks(
    service: Service,
    canaries: Canaries,
    attacks: Sequence[Attack],
    *,
    at_once: int,
    progress: Callable[[AttackResult], None],
    again: int,
) -> tuple[AttackResult, ...]:
    """Run attacks on a service. Arguments and exceptions are the same as for `attack_deployment`."""
    turn = asyncio.Semaphore(at_once)

    async def one(attack: Attack) -> AttackResult:
        async with turn:
            result = await run_attack(attack, service, canaries)
        if not result.only_timed_out:
            progress(result)
        return result

    async def alone(result: AttackResult) -> AttackResult:
        if not result.only_timed_out:
            return result
        for _ in range(again):
            result = await run_attack(result.attack, service, canaries)
            if not result.only_timed_out:
                break
        progress(result)
        return result

    for language in dict.fromkeys(attack.language for attack in attacks):
        # after the attacks, nobody could tell whether an attack caused the problem
        for problem in await neighbour_problems(service, language):
            raise SandboxUnavailable(f"even before the attacks, a harmless evaluator does not work: {problem}")
    together = await asyncio.gather(*(one(attack) for attack in attacks))
    return tuple([await alone(result) for result in together])


async def _host_problems(service: Service, canaries: Canaries, before: Snapshot) -> AsyncIterator[str]:
    """Yield each problem that the host has while it is still running."""
    for name in sorted(set(canaries.visits)):
        yield f"{counted(canaries.visits.count(name), 'connection')} reached the host's listener {name!r}"
    if service.pool.waiting:
        yield f"the queue still has {counted(service.pool.waiting, 'call')}, although every call has been answered"
    now = await asyncio.to_thread(take_snapshot, None)
    if now.memory_mb > before.memory_mb + _MORE_MEMORY_MB:
        yield f"the host grew from {before.memory_mb:.0f} MB to {now.memory_mb:.0f} MB"


async def _left_behind(before: Snapshot, engine: str | None) -> list[str]:
    """Wait for resources that are still being removed. Then return what is left after the host has ended."""
    deadline = time.monotonic() + _SETTLED_S
    while True:
        found = leaks(before, await asyncio.to_thread(take_snapshot, engine))
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(_POLL_S)
