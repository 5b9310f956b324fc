"""Measures many evaluators on one host: calls per second and processor time per call, compared with one evaluator."""

import asyncio
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Language
from tests.benchmarks.figures import CODE, THE_ROW
from tests.processes import seconds_below

CALLERS = 4
TURNS = 10
ZIPF_EXPONENT, ZIPF_EVALUATORS = 1.1, 1000


@dataclass(frozen=True, slots=True)
class Load:
    """The figures of a load: calls per second, milliseconds of processor time per call, and the share of warm calls."""

    calls_per_s: float
    cpu_ms: float
    warm: float


def evaluators(count: int, language: Language = Language.PYTHON) -> list[Evaluator]:
    comment = "#" if language is Language.PYTHON else "//"
    return [Evaluator(f"{CODE[language]}{comment} tenant {number}\n", language) for number in range(count)]


def round_robin(many: Sequence[Evaluator], calls: int) -> Iterator[Evaluator]:
    """Yield the evaluators in turn, for `calls` calls."""
    return islice(cycle(many), calls)


def zipf(many: Sequence[Evaluator], calls: int) -> Iterator[Evaluator]:
    """Yield evaluators in the order in which to call them, the same in each run. Evaluator number n comes 1 / n ** 1.1
    times as often as number 1.
    """
    weights = [1 / rank**ZIPF_EXPONENT for rank in range(1, len(many) + 1)]
    return iter(random.Random(1).choices(many, weights, k=calls))


async def load(service: Service, calls: Iterator[Evaluator]) -> Load:
    """Make these calls, four at a time, and return their figures."""
    made = warm = 0

    async def caller() -> None:
        nonlocal made, warm
        for evaluator in calls:
            result = await service.evaluate(evaluator, THE_ROW)
            assert result.score == 1.0, result.error
            made, warm = made + 1, warm + result.sandbox.warm

    started, cpu = time.perf_counter(), processor_s()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    seconds = time.perf_counter() - started
    return Load(made / seconds, (processor_s() - cpu) * 1000 / made, warm / made)


async def beside_one(service: Service, calls: list[Evaluator]) -> tuple[Load, Load]:
    """Measure these calls alternately with calls of a single evaluator, because the machine may have other work. Return
    both loads.
    """
    (single,) = evaluators(1)
    part = len(calls) // TURNS
    of_many, of_one = [], []
    for turn in range(TURNS):
        of_many.append(await load(service, iter(calls[turn * part : (turn + 1) * part])))
        of_one.append(await load(service, round_robin([single], part)))
    return _mean(of_many), _mean(of_one)


def _mean(loads: list[Load]) -> Load:
    """Return the mean of loads that have the same number of calls; the mean of rates is the harmonic mean."""
    count = len(loads)
    calls_per_s = count / sum(1 / one.calls_per_s for one in loads)
    return Load(calls_per_s, sum(one.cpu_ms for one in loads) / count, sum(one.warm for one in loads) / count)


def processor_s(pid: int | None = None) -> float:
    """Return the processor time of a process (by default this process) and its descendants. Descendants that have ended
    count if their parent has waited for them.
    """
    return sum(seconds for _, seconds in seconds_below(pid or os.getpid()))
