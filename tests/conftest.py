"""Fixtures that all tests use: settings and a service for each backend, and databases."""

import gc
import os
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as settings_of_hypothesis

from evaluator_host.client import Client
from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from tests.authorities import share_authorities
from tests.databases import EACH_ENGINE, Databases
from tests.distribution import COLLECTED, ByGroup, in_shard, longest_first, read_shard, with_long
from tests.engines import ENGINE_DIR, engine_address, remove_unused_engines
from tests.forked import APART
from tests.leftovers import begin_run, remove_leftovers
from tests.processor_time import Meter, Recorder
from tests.workers import fork_workers

if TYPE_CHECKING:
    from tests.over_http import Host
    from tests.server import Server

BACKENDS = ("bubblewrap", "docker")
# for tests with a service of what a host does in the same way on each backend
ON_BUBBLEWRAP = pytest.mark.parametrize("service", ["bubblewrap"], indirect=True)
DATA_DIR = Path(os.environ.get("EVALUATOR_HOST_TEST_DATA", "/var/tmp/evaluator-host-tests/data"))
_CASES = pytest.StashKey[Counter[str]]()  # number of cases of each function that were collected so far
_SECOND = {  # for each second backend, database or client: the first one, and the tests in which `make test` tries both
    "docker": ("bubblewrap", ("tests/attacks/", "tests/contract/")),
    "postgresql": ("sqlite", ("tests/store/",)),
    "async": ("sync", ("tests/unit/", "tests/integration/test_client.py")),
}
_KEPT_S = 86400.0  # seconds until leftovers are removed; younger ones may belong to a run that has not ended
# By default a host keeps evaluators warm in half of the machine's memory, but tests call most evaluators only once and
# run many hosts at a time, so they keep few.
FEW_SANDBOXES: dict[str, object] = {"max_sandboxes": 24, "max_running_sandboxes": Settings().running_sandboxes}


# The same examples in every run, without time limits, so that an example that fails once fails in every run.
_STEADY = settings_of_hypothesis(
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.large_base_example,
    ],
)
settings_of_hypothesis.register_profile("all", _STEADY)
settings_of_hypothesis.register_profile(
    "few", _STEADY, max_examples=10
)  # `make quick` and `make test` choose this profile
settings_of_hypothesis.load_profile("all")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for measuring tests and for running only a shard."""
    parser.addoption(
        "--write-seconds",
        action="store_true",
        help="write the processor time of each group of tests to tests/seconds.json",
    )
    parser.addoption(
        "--shard", type=read_shard, metavar="K/N", help="run part K of N; all parts take about the same time"
    )
    parser.addoption("--long", type=read_shard, metavar="K/N", help="of the tests marked `long`, run only part K of N")


def pytest_configure(config: pytest.Config) -> None:
    """Give the run a name; if an option asks for it, register the plugin that measures processor time."""
    begin_run()
    share_authorities()
    if config.getoption("--write-seconds"):
        os.environ[APART] = "1"
        config.pluginmanager.register(Meter())
        if not hasattr(config, "workerinput") and not config.option.collectonly:
            config.pluginmanager.register(Recorder())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that need a sandbox, because they use a running service, and tests that only `make test-all` runs."""
    item.session.stash.setdefault(COLLECTED, []).append(item)
    if "service" in getattr(item, "fixturenames", ()):
        item.add_marker("engine")
    if any(item.get_closest_marker(name) for name in ("differential", "ray")):
        item.add_marker(pytest.mark.long("this needs the packages of other projects"))
    if _is_second(item):
        item.add_marker("long")
    if sampled := item.get_closest_marker("sampled"):
        cases, function = item.session.stash.setdefault(_CASES, Counter()), item.nodeid.partition("[")[0]
        cases[function] += 1
        if cases[function] % sampled.args[0] != 1:
            item.add_marker("long")


def _is_second(item: pytest.Item) -> bool:
    """Whether this case can be left out: it is for the second backend, database or client, and was already collected
    for the first.
    """
    cases = item.session.stash.setdefault(_CASES, Counter())
    cases[item.nodeid] += 1
    file, _, case = item.nodeid.partition("[")
    return any(
        f"{file}[{case.replace(second, first)}" in cases and not file.startswith(folders)
        for second, (first, folders) in _SECOND.items()
        if second in case
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the tests of the chosen shard, and run the slowest groups first."""
    chosen = items
    if long := config.getoption("--long"):
        chosen = with_long(chosen, *long)
    if shard := config.getoption("--shard"):
        chosen = in_shard(chosen, *shard)
    kept = set(chosen)
    if left_out := [item for item in items if item not in kept]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen
    longest_first(items)


def pytest_collection_finish() -> None:
    """Exclude all objects that exist now from later garbage collections."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Fork the processes of the run from a process that has already collected the tests."""
    fork_workers(config.invocation_params.args, specs)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup:
    """Return the scheduler that hands out tests to processes."""
    return ByGroup(config, log)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove processes and files left behind by earlier runs that were killed, and by their hosts."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    remove_leftovers(DATA_DIR.parent, spared=f"{ENGINE_DIR}/")
    remove_unused_engines()
    kept = [path for name in ("databases", "datasets", "filesets") for path in (DATA_DIR / name).glob("*")]
    for path in (*kept, *DATA_DIR.glob("evaluator-host.db*")):
        with suppress(FileNotFoundError):  # another run may remove its own files at the same time
            if path.stat().st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def settings(backend: str, **changes: object) -> Settings:
    """Return settings for a service on `backend`; start a Docker engine if none answers.

    No sandboxes start in advance, because that takes longer than most tests. Tests about idle sandboxes set
    `idle_sandboxes=1`.
    """
    address = engine_address() if backend == "docker" else None
    values = {"idle_sandboxes": 0, **FEW_SANDBOXES, **changes}
    return Settings(sandbox=SandboxChoice(backend), data_dir=DATA_DIR, docker_host=address, **values)


@pytest.fixture(scope="module", autouse=True)
def own_database(databases: Databases) -> None:
    """Give the hosts of a test module a separate database, so that their names do not clash with names in other
    modules.
    """
    os.environ["EVALUATOR_HOST_DATABASE_URL"] = databases.make("sqlite")


@pytest.fixture(scope="session", params=BACKENDS)
async def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator["Service | Host"]:
    """A running service on each backend in turn; with `EVALUATOR_HOST_WORKERS=2`, it is a host with two processes."""
    if Settings().workers > 1:
        from tests.over_http import served  # noqa: PLC0415 - `tests.over_http` imports this module

        async with served(request.param, tmp_path_factory.mktemp("host")) as host:
            yield host
        return
    async with open_engine(settings(request.param), prewarm=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Server"]:
    """A host for the tests of a module, as a process of its own. Its Python sandboxes are forked, because that is
    cheaper.
    """
    from tests.server import FORKED, Server  # noqa: PLC0415 - `tests.server` imports this module

    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=FORKED) as running:
        yield running


@pytest.fixture(scope="module")
def url(server: "Server") -> str:
    return server.url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    with Client(url) as opened:
        yield opened


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """An object that makes SQLite and PostgreSQL databases."""
    made = Databases(tmp_path_factory.mktemp("databases"))
    yield made
    made.close()


@pytest.fixture(params=EACH_ENGINE)
def database_url(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """A database with all tables, of each kind in turn."""
    with databases.lend(request.param) as url:
        yield url


@pytest.fixture(params=EACH_ENGINE)
def empty_database_url(request: pytest.FixtureRequest, databases: Databases) -> str:
    """A new database without tables, of each kind in turn."""
    return databases.make_empty(request.param)
