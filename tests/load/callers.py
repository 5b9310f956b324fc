"""Calls a host over many connections at once, and judges and counts the answers."""

import asyncio
import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import quantiles

from tests.load.http import NoAnswer, post
from tests.load.programs import GOOD, HOSTILE, Program

_VARIANTS = 2  # variants of each program; for five workspaces, this makes many more evaluators than sandboxes
_LONGEST_PAUSE_S = 10.0
HONEST = {429, 503}


@dataclass(slots=True)
class Tally:
    """The outcomes of a group's calls."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)  # how long answered calls of good programs took

    @property
    def answered(self) -> int:
        return self.statuses[200]

    @property
    def refused(self) -> int:
        return self.statuses[429] + self.statuses[503]

    def percentile(self, percent: int) -> float:
        return quantiles(self.milliseconds, n=100)[percent - 1] if len(self.milliseconds) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """Callers of one workspace. One in `hostile_every` calls is hostile; if that is 0, no call is hostile."""

    name: str
    key: str
    callers: int
    hostile_every: int = 3


async def call_for(port: int, groups: list[Group], *, seconds: float, seed: int = 1) -> dict[str, Tally]:
    """Let every caller make calls until the time is over, wait for the last answers, and return the outcomes by group."""
    until = time.monotonic() + seconds
    numbers = itertools.count(1)
    tallies = {group.name: Tally() for group in groups}
    callers = [
        _Caller(port, group, tallies[group.name], numbers, random.Random(seed + at))
        for group in groups
        for at in range(group.callers)
    ]
    await asyncio.gather(*(caller.run(until) for caller in callers))
    return tallies


@dataclass(frozen=True, slots=True)
class _Caller:
    """A caller, which sends one call after another and judges the answers."""

    port: int
    group: Group
    tally: Tally
    numbers: "itertools.count[int]"
    chance: random.Random

    async def run(self, until: float) -> None:
        # start at a random moment, to spread a thousand connections over two seconds
        await asyncio.sleep(2 * self.chance.random())
        while time.monotonic() < until:
            hostile = self.group.hostile_every and self.chance.randrange(self.group.hostile_every) == 0
            pause_s = await self._call(self.chance.choice(HOSTILE if hostile else GOOD), next(self.numbers))
            await asyncio.sleep(pause_s * (0.5 + self.chance.random()))

    async def _call(self, program: Program, number: int) -> float:
        """Make one call, and return how long to pause."""
        started = time.monotonic()
        body = program.body(number, variant=self.chance.randrange(_VARIANTS))
        try:
            answer = await post(self.port, "/v1/evaluate", body, key=self.group.key)
        except NoAnswer as error:
            self.tally.faults.append(f"{program.name}({number}): no answer: {error}")
            return 1.0
        self.tally.statuses[answer.status] += 1
        if answer.status == 200:
            if (fault := program.fault(number, answer.body)) is not None:
                self.tally.faults.append(fault)
            elif not program.errors:
                self.tally.milliseconds.append((time.monotonic() - started) * 1000)
            return 0.0
        if answer.status not in HONEST or answer.headers["content-type"] != "application/problem+json":
            self.tally.faults.append(f"{program.name}({number}): {answer.status} {answer.body}")
        return min(_LONGEST_PAUSE_S, float(answer.headers.get("retry-after", 1)))
