"""A host that installs packages from the tests' own index, and checks whether a build left anything behind."""

import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import Evaluator, Language, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.indexes import Index
from tests.tools import copy_tools

PYTHON, JAVASCRIPT = Language.PYTHON, Language.JAVASCRIPT


def build_settings(home: Path, index: Index, **changes: Any) -> Settings:
    """Return settings for a host that uses only the tests' index, and no index that is configured on this machine."""
    values: dict[str, Any] = {
        "sandbox": SandboxChoice.BUBBLEWRAP,
        "pip_index_url": index.pip_url,
        "npm_registry": index.npm_url,
        "ca_file": None,
        "index_timeout_s": 60,
        "environments_mb": 400,
        "idle_sandboxes": 0,
    }
    return Settings(data_dir=home, **{**values, **changes})


@asynccontextmanager
async def building(home: Path, index: Index, **changes: Any) -> AsyncIterator[Service]:
    """A service that installs packages from `index`, with the tools that all tests share."""
    copy_tools(home)
    async with open_engine(build_settings(home, index, **changes)) as service:
        yield service


async def evaluated(service: Service, code: str, *pins: str, language: Language = PYTHON) -> EvaluationResult:
    return await service.evaluate(Evaluator(code=code, language=language, packages=pins), Row())


async def value_of(service: Service, code: str, *pins: str, language: Language = PYTHON) -> Any:
    """Return the `details` that an evaluator returned."""
    result = await evaluated(service, code, *pins, language=language)
    assert result.error is None, result.error
    return result.value


async def refusal(service: Service, *pins: str, language: Language = PYTHON) -> HostError:
    """Return why the host refuses to install a package set; fail if it installs the set."""
    code = "def evaluate(i, o, t): return 1" if language is PYTHON else "export const evaluate = (i, o, t) => 1"
    try:
        await evaluated(service, code, *pins, language=language)
    except HostError as error:
        return error
    raise AssertionError(f"{pins} was installed, but the host should refuse the set")


def installed(home: Path) -> list[Path]:
    """Return, for each installed package set, the folder with its files."""
    return sorted((home / "environments").glob("[0-9a-f]*/files"))


def leftovers(home: Path) -> list[str]:
    """Return what is left of builds: unfinished folders, processes that work below the data directory, cgroups."""
    return [*_folders(home), *processes_below(home), *_cgroups()]


def nothing_left(home: Path, *, within_s: float = 10.0) -> None:
    """Fail if a build left something behind; first wait, because the kernel may still be removing it."""
    until = time.monotonic() + within_s
    while found := leftovers(home):
        assert time.monotonic() < until, found
        time.sleep(0.05)


def _folders(home: Path) -> list[str]:
    root = home / "environments"
    found = [*root.glob("build/staging/*"), *root.glob("work/*/*"), *root.glob("removed/*")]
    return [str(path) for path in found]


def processes_below(home: Path) -> list[str]:
    """Return the processes that belong to builds: an argument or the working directory is below the data directory's
    builds.
    """
    below = str(home / "environments")
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if process.name != str(os.getpid()) and (below in line or below in str((process / "cwd").readlink())):
                found.append(line[:300])
        except OSError:
            continue
    return found


def _cgroups() -> Iterator[str]:
    """Yield the cgroups of this process's builds. The numbers of builds begin at a million, those of backends at 1."""
    ours = re.compile(re.escape(this_instance()) + r"\.\d{7,}")
    for parent, names, _ in os.walk("/sys/fs/cgroup"):
        yield from (f"{parent}/{name}" for name in names if ours.fullmatch(name))
