"""Plans the faults of a run: their kinds, times, durations and targets. A plan depends only on the seed and the
options.

A lane is a group of faults that follow each other. Lanes run in parallel, so faults in different lanes overlap.
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BEGINS_AT_S: Final = 1.0


class Kind(StrEnum):
    KILL_HOST = "kill host"
    RESTART_HOST = "restart host"
    STOP_HOST = "stop host for a while"
    JUMP_CLOCK = "clock jumps"
    FEW_DESCRIPTORS = "few descriptors"
    KILL_CHILD = "kill a process of the host"
    STOP_CHILD = "a process of the host hangs"
    KILL_CALLS = "kill a process of calls"
    STOP_CALLS = "a process of calls hangs"
    KILL_SANDBOX = "kill sandbox"
    KILL_RUNNER = "kill runner"
    STOP_SANDBOX = "stop sandbox for a while"
    REMOVE_CGROUP = "remove cgroup"
    KILL_ENGINE = "kill engine"
    LOCK_FILE = "lock database file"
    FILE_READ_ONLY = "database file read-only"
    KILL_DATABASE = "kill database"
    FREEZE_DATABASE = "freeze database"
    END_CONNECTIONS = "end connections"
    DATABASE_READ_ONLY = "database read-only"
    FULL_DATABASE = "database full of connections"
    CUT_NETWORK = "network to the database cut"
    SILENT_NETWORK = "network to the database silent"
    FULL_DISK = "disk full"
    FOLDERS_READ_ONLY = "folders read-only"
    INDEX_DOWN = "index down"
    INDEX_SILENT = "index silent"
    KILL_BUILDER = "kill builder"


@dataclass(frozen=True, slots=True)
class Trait:
    """When, for how long and how often a kind of fault may happen.

    Attributes:
      lane: Name of the group of faults that do not overlap.
      seconds: Shortest and longest duration.
      weight: How often the kind is chosen, relative to others in its lane.
      needs: The conditions for the fault: `root`, a database, a backend.
    """

    lane: str
    seconds: tuple[float, float]
    weight: int = 1
    needs: frozenset[str] = frozenset()


def _trait(lane: str, shortest_s: float, longest_s: float, *needs: str, weight: int = 1) -> Trait:
    return Trait(lane, (shortest_s, longest_s), weight, frozenset(needs))


TRAITS: Final = {
    Kind.KILL_HOST: _trait("host", 0.2, 3, weight=3),
    Kind.RESTART_HOST: _trait("host", 0.2, 2),
    Kind.STOP_HOST: _trait("host", 1, 8, weight=2),
    Kind.JUMP_CLOCK: _trait("host", 2, 10, weight=2),
    Kind.FEW_DESCRIPTORS: _trait("host", 1, 5),
    Kind.KILL_CHILD: _trait("children", 0, 0),
    Kind.STOP_CHILD: _trait("children", 2, 60, weight=3),
    Kind.KILL_CALLS: _trait("children", 0, 0, "workers"),
    Kind.STOP_CALLS: _trait("children", 2, 60, "workers"),
    Kind.KILL_SANDBOX: _trait("sandboxes", 0, 0, weight=4),
    Kind.KILL_RUNNER: _trait("sandboxes", 0, 0, weight=2),
    Kind.STOP_SANDBOX: _trait("sandboxes", 0.5, 4, weight=3),
    Kind.REMOVE_CGROUP: _trait("sandboxes", 0, 0, "root", "bubblewrap"),
    Kind.KILL_ENGINE: _trait("engine", 1, 6, "docker"),
    Kind.LOCK_FILE: _trait("store", 1, 20, "sqlite", weight=2),
    Kind.FILE_READ_ONLY: _trait("store", 1, 12, "sqlite", "root"),
    Kind.KILL_DATABASE: _trait("store", 0.5, 8, "postgresql", weight=2),
    Kind.FREEZE_DATABASE: _trait("store", 1, 20, "postgresql"),
    Kind.END_CONNECTIONS: _trait("store", 0, 0, "postgresql"),
    Kind.DATABASE_READ_ONLY: _trait("store", 1, 12, "postgresql"),
    Kind.FULL_DATABASE: _trait("store", 1, 12, "postgresql"),
    Kind.CUT_NETWORK: _trait("store", 1, 12, "postgresql", weight=2),
    Kind.SILENT_NETWORK: _trait("store", 1, 20, "postgresql", weight=2),
    Kind.FULL_DISK: _trait("store", 1, 10, "root", weight=2),
    Kind.FOLDERS_READ_ONLY: _trait("store", 1, 8, "root"),
    Kind.INDEX_DOWN: _trait("index", 1, 8, weight=2),
    Kind.INDEX_SILENT: _trait("index", 1, 8),
    Kind.KILL_BUILDER: _trait("index", 0, 0),
}
GAPS_S: Final = {
    "host": (10, 25), "children": (8, 20), "sandboxes": (0.5, 4), "engine": (12, 30), "store": (4, 12), "index": (3, 10)
}  # fmt: skip
"""Shortest and longest time between two faults, by lane."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that decide a plan, besides the seed.

    Attributes:
      seconds: Length of the run.
      root: Whether faults that need root's rights are possible.
      workers: Number of the host's processes that answer calls.
    """

    seconds: float
    database: str = "sqlite"
    backend: str = "bubblewrap"
    root: bool = True
    workers: int = 1

    @property
    def granted(self) -> frozenset[str]:
        more = {"root": self.root, "workers": self.workers > 1}
        return frozenset({self.database, self.backend, *(name for name, given in more.items() if given)})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
      at_s: Seconds from the beginning of the run.
      seconds: How long the fault lasts; 0 if it happens in one moment.
      pick: A number from 0 to 1 that selects the victim, size or variant.
    """

    at_s: float
    kind: Kind
    seconds: float
    pick: float

    @property
    def lane(self) -> str:
        return TRAITS[self.kind].lane

    def __str__(self) -> str:
        return f"{self.at_s:7.1f} s  {self.kind} ({self.seconds:g} s, pick {self.pick:g})"


def make_plan(seed: int, options: Options) -> tuple[Fault, ...]:
    """Return the faults of a run, in the order of their times."""
    faults = [fault for lane in GAPS_S for fault in _lane(lane, random.Random(f"{seed} {lane}"), options)]
    return tuple(sorted(faults, key=lambda fault: (fault.at_s, fault.kind)))


def _lane(lane: str, chance: random.Random, options: Options) -> list[Fault]:
    """Return the faults of one lane: first each kind once in random order, then random kinds by their weights."""
    traits = {kind: trait for kind, trait in TRAITS.items() if trait.lane == lane and trait.needs <= options.granted}
    if not traits:
        return []
    first = chance.sample(sorted(traits), len(traits))
    if Kind.KILL_HOST in first:  # even the shortest run has this fault
        first.remove(Kind.KILL_HOST)
        first.insert(0, Kind.KILL_HOST)
    made: list[Fault] = []
    at_s = BEGINS_AT_S
    while True:
        at_s += chance.uniform(*GAPS_S[lane]) * (0.5 if not made else 1)
        kind = first.pop(0) if first else chance.choices(list(traits), [trait.weight for trait in traits.values()])[0]
        seconds = round(chance.uniform(*traits[kind].seconds), 1)
        if at_s + seconds > options.seconds:
            return made
        made.append(Fault(round(at_s, 1), kind, seconds, round(chance.random(), 3)))
        at_s += seconds
