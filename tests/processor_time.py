"""Measures the processor time of each part of a group of tests: in the test process, in all processes that it starts,
and in containers.

`make test-all ARGS=--write-seconds` adds up the times of each part and writes `seconds.json`. Processor time is nearly
the same on a quiet and on a busy machine.
"""

import json
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.distribution import SECONDS, part_of
from tests.processes import seconds_below

_CONTAINERS = (Path("/sys/fs/cgroup/cpuacct/docker/cpuacct.usage"), Path("/sys/fs/cgroup/docker/cpu.stat"))


class Meter:
    """Adds the processor time of a part's tests to a report. A meter works in each process that runs tests.

    Reading the times of all processes takes a tenth of a second, so the times are read only at the end of a part.
    """

    def __init__(self) -> None:
        self._before: dict[int, float] = {}
        self._containers_s = container_seconds()
        self._at_end = False
        self._part = ""

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Note whether the next test belongs to a different part."""
        self._part = part_of(item)
        self._at_end = nextitem is None or part_of(nextitem) != self._part

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add `processor_s` to the report of a part's last teardown."""
        report = yield
        if self._at_end and call.when == "teardown":
            report.processor_s = {self._part: self._used()}  # type: ignore[attr-defined] # xdist passes it on
        return report

    def _used(self) -> float:
        """Return how many processor seconds were used since the last call. If two test processes use containers at the
        same time, both count the time of all these containers.
        """
        now, containers_s = dict(seconds_below(os.getpid())), container_seconds()
        used = sum(now.values()) + containers_s - self._containers_s
        # If a process has ended, its time is part of its parent's sum if the parent waited for it; otherwise its time
        # is lost.
        used -= sum(self._before.values())
        self._before, self._containers_s = now, containers_s
        return max(used, 0.0)


class Recorder:
    """Adds up the processor time of each part of the tests, and writes the sums at the end.

    The recorder runs in the process that distributes the tests.
    """

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the processor time in a report to the sum of the report's part."""
        self._seconds.update(getattr(report, "processor_s", {}))

    def pytest_sessionfinish(self) -> None:
        """Write the times of all parts that ran to `seconds.json`; entries of other parts stay unless their files are
        gone.
        """
        kept = {part: seconds for part, seconds in json.loads(SECONDS.read_text()).items() if _is_there(part)}
        used = Counter(kept | {part: round(seconds, 1) for part, seconds in self._seconds.items()})
        SECONDS.write_text(json.dumps(dict(used.most_common()), indent=2) + "\n")


def _is_there(part: str) -> bool:
    return (SECONDS.parents[1] / part.split(maxsplit=1)[0]).exists()


def container_seconds() -> float:
    """Return the processor time of all containers so far; 0 if the engine has no cgroup for containers."""
    for file in _CONTAINERS:
        try:
            text = file.read_text()
        except OSError:
            continue
        return int(text) / 1e9 if "usec" not in text else int(text.split()[1]) / 1e6
    return 0.0
