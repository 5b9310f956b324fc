"""Hands out tests to shards and to the processes of a run; tests that share expensive fixtures stay together.

A group of tests has two parts: its tests that are marked `long`, and its other tests. `seconds.json` has the processor
seconds of each part (`tests/processor_time.py` measures them); `WAITING` has the time of groups that mostly wait.
"""

import argparse
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling

SECONDS: Final = Path(__file__).with_name("seconds.json")
_BACKEND: Final = re.compile(r"\[(?:.*-)?(bubblewrap as an ordinary user|ordinary user|bubblewrap|docker)(?:-.*)?\]$")
# files of tests with expensive fixtures for each backend; they are split, so that backends can run in different
# processes
_BY_BACKEND: Final = {
    "tests/attacks/test_catalogue.py", "tests/attacks/test_view.py",
    "tests/attacks/test_weakened.py", "tests/contract/test_cases.py", "tests/contract/test_conformance.py",
    "tests/faults/test_busy_machine.py",
    "tests/integration/test_real_sets.py",
    "tests/integration/test_real_sets_shared.py",
}  # fmt: skip
# wall-clock seconds of groups that mostly wait; if such a group began last, it would delay the whole run
WAITING: Final = {
    "tests/faults/test_hung_processes.py": 90, "tests/jobs/test_hostile_templates.py": 12, "tests/jobs/test_hostile_uploads.py": 9, "tests/jobs/test_job_process.py": 13,
    "tests/jobs/test_online.py": 18, "tests/jobs/test_run.py": 25, "tests/jobs/test_turns.py": 9, "tests/jobs/test_webhooks.py": 8,
    "tests/runners/javascript/test_forgery.py": 11, "tests/runners/javascript/test_toolchain.py": 9,
    "tests/runners/python/test_large_calls.py": 10,
}  # fmt: skip
# tests in these folders share hosts or a PostgreSQL server, because starting them takes longer than using them
_TOGETHER: Final = ("tests/store/", "tests/wires/")
LONG: Final = " long"
COLLECTED: Final = pytest.StashKey[list[pytest.Item]]()
"""All tests of a session, including deselected ones."""
_UNMEASURED_S: Final = 1.0
_PERHAPS_S: Final = 20.0  # an unmeasured part may take long, so it begins before parts that take less than this
# The tests of a group share a host and a browser. There are two groups, which take about as long; since making records
# takes a while, nearly all tests that need them are in the same group.
_BROWSER: Final = "tests/browser/"
_OF_RECORDS: Final = {
    "dataset_edits", "datasets", "environments", "evaluators", "job_peek", "job_rows", "jobs", "labels", "record_pages",
    "removed", "trust",
}  # fmt: skip


def group_of(test: str) -> str:
    """Return the group of a test: its folder or its file, together with the backend if the file is split by backend."""
    file = test.split("::", 1)[0]
    for folder in _TOGETHER:
        if file.startswith(folder):
            return folder
    if file.startswith(_BROWSER):
        page = file.removeprefix(_BROWSER).removeprefix("test_").removesuffix(".py")
        return f"{_BROWSER} of records" if page in _OF_RECORDS else _BROWSER
    backend = _BACKEND.search(test) if file in _BY_BACKEND else None
    return f"{file} {backend[1]}" if backend else file


class ByGroup(LoadFileScheduling):
    """Gives each process one group of tests after another, in the order in which the groups were collected."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # otherwise xdist would begin with the groups that have the most tests

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def part_of(item: pytest.Item) -> str:
    """Return the name of the half of a group that a test is in: the group's long tests, or its others."""
    group = group_of(item.nodeid)
    return f"{group}{LONG}" if item.get_closest_marker("long") else group


def read_shard(text: str) -> tuple[int, int]:
    """Return the two numbers in `K/N`: shard K of N shards."""
    read = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not read or int(read[1]) > int(read[2]):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a shard: write 1/6 for the first of six parts, and 6/6 for the last"
        )
    return int(read[1]), int(read[2])


def in_shard(items: list[pytest.Item], number: int, of: int) -> list[pytest.Item]:
    """Return the tests in shard number `number`, if there are `of` shards.

    Long parts are distributed separately from other parts, so that a shard always has the same long tests.
    """
    parts = {part_of(item) for item in items}
    shards = spread({part for part in parts if part.endswith(LONG)}, of)
    shards |= spread({part for part in parts if not part.endswith(LONG)}, of)
    return [item for item in items if shards[part_of(item)] == number]


def with_long(items: list[pytest.Item], number: int, of: int) -> list[pytest.Item]:
    """Return the tests that are not long, and those of the long tests that are in shard number `number` of `of`."""
    kept = set(in_shard(items, number, of))
    return [item for item in items if item in kept or not part_of(item).endswith(LONG)]


def spread(parts: set[str], of: int) -> dict[str, int]:
    """Assign each part to the shard that has the least to do so far, beginning with the longest part."""
    left = dict.fromkeys(range(1, of + 1), 0.0)
    found: dict[str, int] = {}
    for part in sorted(parts, key=lambda part: (-seconds_of(part), part)):
        found[part] = min(left, key=left.__getitem__)
        left[found[part]] += seconds_of(part)
    return found


def seconds_of(part: str) -> float:
    """Return the measured seconds of a part, or a small number if the part was not measured."""
    return max(_measured().get(part, _UNMEASURED_S), WAITING.get(part, 0.0))


@cache
def _measured() -> dict[str, float]:
    found: dict[str, float] = json.loads(SECONDS.read_text())
    return found


def longest_first(items: list[pytest.Item]) -> None:
    """Sort groups of tests by their time; the tests of a group stay together and in order."""
    seconds: Counter[str] = Counter()
    first: dict[str, int] = {}
    for part in {part_of(item) for item in items}:
        seconds[part.removesuffix(LONG)] += max(seconds_of(part), _PERHAPS_S if part not in _measured() else 0.0)
    for at, item in enumerate(items):
        first.setdefault(group_of(item.nodeid), at)
    place = {group: at for at, group in enumerate(sorted(first, key=lambda group: (-seconds[group], first[group])))}
    items.sort(key=lambda item: place[group_of(item.nodeid)])
