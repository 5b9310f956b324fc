"""Starts the Python runner as a plain process, with the command line that backends use."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import RestrictedPython

from tests.runners.conftest import RUNTIMES, RunnerProcess

RUNNER = RUNTIMES / "python" / "runner.py"
COMMAND = (sys.executable, "-I", "-S", "-B", str(RUNNER))


@pytest.fixture
def start() -> Iterator[Callable[..., RunnerProcess]]:
    """Yield a function that starts a runner with arguments; all runners are ended after the test."""
    started: list[RunnerProcess] = []

    def start_one(*arguments: str, **options: Any) -> RunnerProcess:
        runner = RunnerProcess([*COMMAND, *arguments], **options)
        started.append(runner)
        return runner

    yield start_one
    for runner in started:
        runner.close()


@pytest.fixture
def runner(start: Callable[..., RunnerProcess]) -> RunnerProcess:
    """A runner that has received no request yet."""
    return start()


@pytest.fixture(scope="session")
def restricted_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that contains only RestrictedPython."""
    directory = tmp_path_factory.mktemp("restricted")
    (directory / "RestrictedPython").symlink_to(Path(RestrictedPython.__file__).parent)
    return directory
