"""`make bench ARGS=--quick`: compares the host's processor time with that of floors (bare mechanisms) in two minutes.

The processor time of the host, its sandboxes and all their processes is nearly the same on a quiet and on a busy
machine. The host's time is compared with the time of a floor that does the same kind of work, because their ratio is
nearly the same on all machines. Both times are measured alternately. So work that mostly forks is compared with a bare
fork server, and rows that need no separate process are compared with the same rows computed in one process.
`ratios.json` has the ratios of the last measurement, which was made on a busy machine: on such a machine, the host has
to wake up for an answer more often. `python -m tests.benchmarks.ratios` measures them again and writes the file. A
ratio that has fallen by more than a fifth in two runs is a regression.
"""

import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import uvloop

from evaluator_host.engine.config.settings import SandboxChoice, SandboxStart, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Row
from evaluator_host.types.outcome import Status
from tests.benchmarks.figures import CODE, THE_ROW, running_ms
from tests.benchmarks.floors import ForkServer, compute_rows

KEPT: Final = Path(__file__).with_name("ratios.json")
MOST_FALL: Final = 0.2
_ROUNDS: Final = 5
_SANDBOXES: Final = 128
_FORKS: Final = 300
_COMPUTED: Final = 20_000
_WITHOUT_FORKS: Final = frozenset({"row, JavaScript", "row of a batch, Python", "row of a batch, JavaScript"})


async def measure(settings: Settings) -> dict[str, float]:
    """Return each figure's ratio: the floor's processor time, divided by the figure's."""
    # no sandbox may end during a measurement, because its processor time would be missing in the sum
    many = settings.model_copy(update={"max_sandboxes": _SANDBOXES, "idle_sandboxes": 0})
    templates = many.model_copy(update={"sandbox_start": SandboxStart.TEMPLATE})
    taken: dict[str, list[float]] = {}
    floor = ForkServer()
    try:
        async with open_engine(many) as service, open_engine(templates) as forking:
            works = _works(service, forking)
            for _, work in works.values():
                await work(2)
            for _ in range(_ROUNDS):
                forked_ms = await _each_ms(_FORKS, lambda count: _forked(floor, count))
                computed_ms = await _each_ms(_COMPUTED, _computed)
                for name, (count, work) in works.items():
                    floor_ms = computed_ms if name in _WITHOUT_FORKS else forked_ms
                    taken.setdefault(name, []).append(floor_ms / await _each_ms(count, work))
    finally:
        floor.close()
    return {name: statistics.median(found) for name, found in taken.items()}


def fallen(kept: dict[str, float], found: dict[str, float]) -> dict[str, float]:
    """Return the ratios that have fallen too far, each divided by its stored ratio."""
    left = {name: found[name] / kept[name] for name in kept}
    return {name: rest for name, rest in left.items() if rest < 1 - MOST_FALL}


def check(settings: Settings) -> list[str]:
    """Measure the ratios, and measure again if a ratio has fallen. Return a sentence for each ratio that has fallen in
    both runs.
    """
    kept: dict[str, float] = json.loads(KEPT.read_text())
    found = uvloop.run(measure(settings))
    for name, ratio in found.items():
        print(f"{ratio:8.3f}  kept {kept.get(name, 0.0):8.3f}  {name}")
    if not (suspects := fallen(kept, found)):
        return []
    again = fallen(kept, uvloop.run(measure(settings)))
    return [
        f"{name} takes {1 / max(rest, again[name]):.2f} times what it took; see {KEPT.name}"
        for name, rest in suspects.items()
        if name in again
    ]


def _works(service: Service, forking: Service) -> dict[str, tuple[int, Callable[[int], Awaitable[None]]]]:
    """Return each kind of work by its name: the number of repetitions in a round, and a function that does the work as
    many times as its argument says.
    """
    python, javascript = Language.PYTHON, Language.JAVASCRIPT
    return {
        "row, Python": (300, lambda count: _rows(service, python, Isolation.ROW, count)),
        "row, JavaScript": (300, lambda count: _rows(service, javascript, Isolation.ROW, count)),
        "row of a batch, Python": (4000, lambda count: _rows(service, python, Isolation.BATCH, count)),
        "row of a batch, JavaScript": (4000, lambda count: _rows(service, javascript, Isolation.BATCH, count)),
        "warm call, Python": (300, lambda count: _calls(service, count)),
        "first call, Python": (4, lambda count: _first_calls(service, python, count)),
        "first call, Python from a template": (4, lambda count: _first_calls(forking, python, count)),
        "first call, JavaScript": (3, lambda count: _first_calls(service, javascript, count)),
        "first call, TypeScript": (3, lambda count: _first_calls(service, Language.TYPESCRIPT, count)),
    }


async def _each_ms(count: int, work: Callable[[int], Awaitable[None]]) -> float:
    before_ms = running_ms()
    await work(count)
    return (running_ms() - before_ms) / count


async def _forked(floor: ForkServer, count: int) -> None:
    for _ in range(count):
        floor.call()


async def _computed(count: int) -> None:
    compute_rows(count)


async def _rows(service: Service, language: Language, isolation: Isolation, count: int) -> None:
    def source() -> Iterator[Row]:
        for _ in range(count):
            yield THE_ROW

    evaluator, scored = Evaluator(CODE[language], language), 0
    async for _, result in service.evaluate_rows(evaluator, source(), isolation=isolation):
        scored += result.status is Status.SCORED
    assert scored == count


async def _calls(service: Service, count: int) -> None:
    evaluator = Evaluator(CODE[Language.PYTHON])
    for _ in range(count):
        assert (await service.evaluate(evaluator, THE_ROW)).score == 1.0


async def _first_calls(service: Service, language: Language, count: int) -> None:
    comment = "#" if language is Language.PYTHON else "//"
    for number in range(count):
        code = CODE[language] + f"{comment} {time.time_ns()} {number}\n"
        assert (await service.evaluate(Evaluator(code, language), THE_ROW)).score == 1.0


if __name__ == "__main__":
    data_dir = Path(sys.argv[1] if len(sys.argv) > 1 else "/var/tmp/evaluator-host-tests/data")
    ratios = uvloop.run(measure(Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=data_dir)))
    KEPT.write_text(json.dumps({name: float(f"{ratio:.3g}") for name, ratio in ratios.items()}, indent=2) + "\n")
    print(KEPT.read_text(), end="")
