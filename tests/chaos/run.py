"""One run: first a baseline without faults, then a host with callers and faults, then checks of what must hold at the
end.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.config.settings import Settings
from tests import engines
from tests.chaos.faults import Faults
from tests.chaos.hosts import ChaosHost, batch, publish, settings_environment, small_disk
from tests.chaos.oracle import Oracle
from tests.chaos.plan import Fault, Kind, Options, make_plan
from tests.chaos.programs import ALL, PACKAGED, PACKAGES, ROWS, row
from tests.chaos.traffic import Traffic
from tests.crash_engine import CrashEngine, crash_engine
from tests.databases import PostgreSQL
from tests.indexes import Index
from tests.leftovers import make_folder
from tests.model_server import ModelServer
from tests.relay import Relay
from tests.server import Server
from tests.tools import copy_tools

MOST_MB: Final = 600.0  # MB of memory for a host, as in the soak
_LATE_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.5
_LEFT_S: Final = 30.0
# errors in the log, except the allowed ones: a database that does not work, and a job that two kills ended
_LOGGED: Final = re.compile(
    r"^(Traceback|ERROR (?!evaluator_host.platform.store.watch|.*hosts ended while they ran it))", re.MULTILINE
)
# this line is logged for calls that still wait when the grace period ends
_CUT_OFF: Final = "ERROR uvicorn.error: Cancel"
_LOST: Final = (
    "ERROR evaluator_host.server.workers: a process for ",
    "ERROR evaluator_host.engine.system.child_watch",
)
_LOSE_CHILDREN: Final = (Kind.KILL_CHILD, Kind.STOP_CHILD, Kind.KILL_CALLS, Kind.STOP_CALLS)
_HOLD_CALLS: Final = (Kind.FREEZE_DATABASE, Kind.LOCK_FILE, Kind.SILENT_NETWORK)
_SHORT_MINUTES: Final = 1.5


@dataclass(frozen=True, slots=True)
class Run:
    """The options of a run.

    Attributes:
      ordinary: Whether the host runs as an ordinary user.
      burners: Number of processes that keep processors busy beside the host.
      workers: Number of the host's processes that answer calls.
      beside: Whether a second host with the same database and data runs jobs too; its clock is ten minutes behind.
    """

    minutes: float = 10.0
    seed: int = 1
    database: str = "sqlite"
    backend: str = "bubblewrap"
    ordinary: bool = False
    burners: int = 0
    workers: int = 1
    beside: bool = False

    @property
    def options(self) -> Options:
        which = {"database": self.database, "backend": self.backend, "workers": self.workers}
        return Options(60 * self.minutes, root=os.geteuid() == 0, **which)  # type: ignore[arg-type]

    @property
    def packages(self) -> int:
        """The number of programs with packages; the baseline builds each package once."""
        return 2 if self.minutes < _SHORT_MINUTES else PACKAGES


def run_chaos(run: Run, *, keep: Path | None = None) -> dict[str, Any]:
    """Run the test and return a report: `run`, `plan`, `faults` by kind, `counts`, `findings`, `ready_s`, `most_mb`.

    Args:
      run: The options of the run.
      keep: Folder for the logs of the hosts; None to remove them.
    """
    with ExitStack() as stack:
        folder = make_folder("eh-chaos")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        disk = stack.enter_context(small_disk(folder, root=os.geteuid() == 0))
        index = stack.enter_context(Index())
        publish(index)
        oracle = Oracle()
        learn(oracle, folder, index, packages=run.packages)
        postgresql = stack.enter_context(PostgreSQL()) if run.database == "postgresql" else None
        network = stack.enter_context(Relay(postgresql.socket, tcp=True)) if postgresql else None
        url = postgresql.make_database() if postgresql else f"sqlite:///{disk / 'data' / 'host.db'}"
        engine = _engine(stack) if run.backend == "docker" else None
        more = {"EVALUATOR_HOST_DOCKER_HOST": engine.address} if engine else {}
        more["EVALUATOR_HOST_WORKERS"] = str(run.workers)
        reached = (
            url if network is None else url.partition("?")[0].replace("@", f"@{network.address.removeprefix('tcp://')}")
        )
        environment = settings_environment(index, reached, **more)
        folder.chmod(0o755)
        hosts = []
        for skew_s in (0.0, *([-600.0] if run.beside else [])):
            home = folder / f"host-{len(hosts)}"
            home.mkdir()
            hosts.append(
                ChaosHost(
                    home, disk, backend=run.backend, environment=environment, oracle=oracle, ordinary=run.ordinary,
                    skew_s=skew_s,
                )
            )  # fmt: skip
            stack.callback(_keep_logs, home, keep)
            stack.callback(_kill, hosts[-1])
        faults = Faults(
            hosts[0], oracle.timeline,
            database_url=url, index=index, disk=disk, postgresql=postgresql, network=network, engine=engine,
        )  # fmt: skip
        stack.enter_context(burning(run.burners))
        model = stack.enter_context(ModelServer())
        asyncio.run(_under_faults(run, hosts, faults, oracle, model_url=model.url))
        _judge_end(hosts, oracle, docker=["docker", "--host", engine.address] if engine else [])
    return {
        "run": asdict(run),
        "plan": [str(fault) for fault in make_plan(run.seed, run.options)],
        "faults": dict(sorted(oracle.timeline.hits.items())),
        "missed": dict(sorted(oracle.timeline.missed.items())),
        "counts": dict(sorted(oracle.counts.items())),
        "hosts": sum(len(host.pids) for host in hosts),
        "ready_s": round(hosts[0].ready_s),
        "most_mb": round(max(host.most_mb for host in hosts)),
        "findings": oracle.findings,
    }


def learn(oracle: Oracle, folder: Path, index: Index, *, packages: int) -> None:
    """Run every program on every row on a host without faults, and give the results to the oracle."""
    home = folder / "quiet"
    home.mkdir()
    environment = settings_environment(index, f"sqlite:///{home / 'host.db'}")
    rows = [row(number) for number in range(ROWS)]
    unused = {program.name for program in PACKAGED[packages:]}
    copy_tools(home / "data")
    with Server(log=home / "log", data_dir=home / "data", environment=environment) as server:
        for program in ALL.values():
            if program.name not in unused:
                oracle.learn(program, batch(server.url, {"evaluator": program.evaluator(), "rows": rows}))
    print(f"learned {len(oracle.expected)} programs", flush=True)


def _engine(stack: ExitStack) -> CrashEngine:
    return stack.enter_context(crash_engine(Settings().docker_image, source=engines.engine_address()))


@contextmanager
def burning(count: int) -> Iterator[None]:
    """Keep `count` processes busy during the block."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


async def _under_faults(run: Run, hosts: list[ChaosHost], faults: Faults, oracle: Oracle, *, model_url: str) -> None:
    """Let callers call the first host while faults happen, and afterwards until every job has ended."""
    for host in hosts:
        host.start()
        assert await asyncio.to_thread(host.until_ready), host.log_end()
    host = hosts[0]
    traffic = Traffic(host, oracle, seed=run.seed, packages=run.packages, model_url=model_url)
    over, ended = asyncio.Event(), asyncio.Event()
    watching = asyncio.gather(*(_watch(one, ended) for one in hosts))
    calling = asyncio.create_task(traffic.run(over))
    plan = make_plan(run.seed, run.options)
    began = time.monotonic()
    try:
        lanes = {fault.lane for fault in plan}
        await asyncio.gather(
            asyncio.sleep(run.options.seconds),
            *(_lane([fault for fault in plan if fault.lane == lane], began, faults, oracle) for lane in lanes),
        )
        print(f"the last fault is over after {time.monotonic() - began:.0f} s", flush=True)
        if not await asyncio.to_thread(host.until_ready):
            oracle.find(f"the host is not ready again after the last fault\n{host.log_end()}")
        over.set()
        await calling
        await traffic.judge_stored()
        await traffic.judge_traces()
    finally:
        for one in hosts:
            one.over = True
        ended.set()
        calling.cancel()
        await asyncio.wait([calling, watching])
        await traffic.close()


async def _lane(plan: list[Fault], began: float, faults: Faults, oracle: Oracle) -> None:
    """Cause the faults of one lane, each at its time or a little later; skip faults whose time has passed.

    Otherwise, a host that takes a minute to start would have faults until a minute after the end of the run.
    """
    for fault in plan:
        if time.monotonic() - began > fault.at_s + fault.seconds + _LATE_S:
            oracle.timeline.missed[fault.kind] += 1
            continue
        await asyncio.sleep(max(0.0, began + fault.at_s - time.monotonic()))
        await asyncio.to_thread(_inflict, fault, faults, oracle)


def _inflict(fault: Fault, faults: Faults, oracle: Oracle) -> None:
    window, hit = oracle.timeline.begin(fault), False
    try:
        with faults.inflict(fault) as hit:
            if hit:
                time.sleep(fault.seconds)
    finally:
        oracle.timeline.end(window, hit=hit)


async def _watch(host: ChaosHost, ended: asyncio.Event) -> None:
    while not ended.is_set():
        await asyncio.to_thread(host.look)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _LOOK_EVERY_S)


def _judge_end(hosts: list[ChaosHost], oracle: Oracle, *, docker: list[str]) -> None:
    """Stop the hosts as an operator would, and report what they leave behind as findings."""
    for host in hosts:
        if (code := host.end(signal.SIGTERM)) != 0:
            oracle.find(f"the host ended with exit code {code}\n{host.log_end()}")
    for host in hosts:
        _judge_remains(host, oracle, docker=docker)
    oracle.judge_end()


def _judge_remains(host: ChaosHost, oracle: Oracle, *, docker: list[str]) -> None:
    until = time.monotonic() + _LEFT_S
    while (left := host.remains(docker=docker)) and time.monotonic() < until:
        time.sleep(0.5)
    if left:
        oracle.find(f"left behind: {left}")
    if host.most_mb > MOST_MB:
        oracle.find(f"a host took {host.most_mb:.0f} MB of memory, more than {MOST_MB:.0f}")
    for number, log in enumerate(host.logs(), 1):
        for at in (found.start() for found in _LOGGED.finditer(log)):
            if log.startswith(_CUT_OFF, at) and any(map(oracle.timeline.happened, _HOLD_CALLS)):
                continue  # documented behaviour: connections to a database that never answers stay open for longer
            if log.startswith(_LOST, at) and any(map(oracle.timeline.happened, _LOSE_CHILDREN)):
                continue
            oracle.find(f"host {number} logged a fault:\n{log[at : at + 2500]}")


def _keep_logs(folder: Path, keep: Path | None) -> None:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        for log in folder.glob("*.log"):
            shutil.copy(log, keep / f"{folder.name}-{log.name}")


def _kill(host: ChaosHost) -> None:
    with contextlib.suppress(ProcessLookupError):
        if host.pid:
            host.end(signal.SIGKILL)
