"""The host is killed in each step of a build: the build's processes end too, and the next host cleans up and builds the
package set.

The guards are bubblewrap's `--die-with-parent` and its pid namespace, without which uv and npm would go on, and the
cleaning at the next start.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator_host.types.evaluator import Language
from tests.builds import building, nothing_left, processes_below
from tests.indexes import Index, hang
from tests.packages import npm_package, wheel
from tests.server import Server
from tests.tools import copy_tools

SLOW = "import time\ntime.sleep(25)"


@pytest.fixture
def index() -> Iterator[Index]:
    with Index(user="bob:c0rp-passw0rd") as serving:
        yield serving


class Kill:
    """A package set, and a function that returns whether its build is in the middle of a step."""

    def __init__(self, name: str, language: str, reached: Callable[[Index, Path], bool]) -> None:
        self.name = name
        self.language = language
        self.reached = reached

    @property
    def body(self) -> dict[str, object]:
        return {
            "language": self.language,
            "packages": [f"{self.name}{'==' if self.language == 'python' else '@'}1.0.0"],
        }


def asked_for(text: str) -> Callable[[Index, Path], bool]:
    return lambda index, _: any(text in path for path in index.paths())


def stage_has(pattern: str) -> Callable[[Index, Path], bool]:
    return lambda _, home: any((home / "environments" / "build" / "staging").glob(pattern))


def offer_all(index: Index) -> list[Kill]:
    """Offer package sets whose builds last long enough for the host to be killed during them, because of a silent
    index, many files to write, or a slow import.
    """
    many = {f"large/file{number}.py": "x = 1\n" * 20 for number in range(2_000)}
    index.add_python(wheel("resolved", {"resolved.py": ""}))
    index.add_python(wheel("downloaded", {"downloaded.py": ""}))
    index.add_npm(npm_package("fetched", {"index.js": ""}))
    index.add_python(wheel("large", {"large/__init__.py": "", **many}))
    index.add_python(wheel("tried", {"tried.py": SLOW}))
    index.odd["/simple/resolved/"] = hang
    index.odd["/npm/fetched/-/fetched-1.0.0.tgz"] = hang
    return [
        Kill("resolved", "python", asked_for("/simple/resolved/")),
        Kill("fetched", "javascript", asked_for("fetched-1.0.0.tgz")),
        Kill("large", "python", stage_has("*/files/large")),
        Kill("tried", "python", stage_has("*/files/tried*/RECORD")),
    ]


@pytest.mark.long("test_killed_installs.py has a host that is killed while it installs")
@pytest.mark.timeout(300)  # the test starts five hosts
def test_a_host_killed_at_any_step_leaves_no_process_and_builds_after_its_restart(index: Index, tmp_path: Path) -> None:
    copy_tools(tmp_path)
    environment = {"EVALUATOR_HOST_PIP_INDEX_URL": index.pip_url, "EVALUATOR_HOST_NPM_REGISTRY": index.npm_url}
    environment |= {"EVALUATOR_HOST_NO_PROXY": "127.0.0.1"}
    kills = offer_all(index)
    hosts = [killed_while_it_builds(kill, index, tmp_path, environment) for kill in kills]
    index.odd.clear()
    index.files.pop("/simple/tried/")
    index.add_python(wheel("tried", {"tried.py": "import time"}))
    with started(tmp_path, environment) as server:
        for kill in kills:
            if kill.name == "tried":  # the lock of this set names the slow version, so a new build would be slow again
                continue
            key = server.client.post("/v1/environments", json=kill.body).json()["key"]
            events = server.client.get(f"/v1/environments/{key}/events", timeout=100).text
            assert events.rstrip().splitlines()[-2] == "event: ready", (kill.name, events[-500:])
        nothing_left(tmp_path)
        assert cgroups_of(hosts) == []
        assert "c0rp-passw0rd" not in server.log


def killed_while_it_builds(kill: Kill, index: Index, home: Path, environment: dict[str, str]) -> int:
    """Start a host, kill it during the build, and return its process id."""
    server = started(home, environment)
    try:
        server.client.post("/v1/environments", json=kill.body)
        wait_until(lambda: kill.reached(index, home), 90)
    finally:
        server.kill()
    wait_until(lambda: processes_below(home) == [], 30)
    return server.process.pid


def started(home: Path, environment: dict[str, str]) -> Server:
    return Server(log=home / "log", data_dir=home, environment=environment).wait_until_ready()


def wait_until(true: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def cgroups_of(hosts: list[int]) -> list[str]:
    """Return the cgroups of builds that these dead hosts have left behind."""
    names = re.compile(rf"host-[0-9a-f]+-\d+-({'|'.join(map(str, hosts))})-\d+(\.\d+)?")
    return [f"{at}/{name}" for at, folders, _ in os.walk("/sys/fs/cgroup") for name in folders if names.fullmatch(name)]


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_host_that_is_stopped_ends_its_builds(index: Index, tmp_path: Path) -> None:
    kills = offer_all(index)[:2]
    async with building(tmp_path, index) as service:
        for kill in kills:
            packages = kill.body["packages"]
            assert isinstance(packages, list)
            language = "python" if kill.language == "python" else "javascript"
            await service.environments.request(packages, language_of(language))
            while not kill.reached(index, tmp_path):
                await asyncio.sleep(0.02)
    nothing_left(tmp_path)


def language_of(name: str) -> Language:
    return Language(name)
