"""On a busy machine, sandboxes get a small part of the processor, or are stopped for a while. Times may differ from a
quiet machine, but results may not.

A time limit counts the processor time that a sandbox could get (`engine/sandbox/linux/work_clock.py`). Code that
computes or sleeps too long ends with `timeout` on a busy machine too, and other code does not.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import docker
import psutil
import pytest

from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.base import Link
from evaluator_host.engine.sandbox.linux.cgroup_discovery import find_hierarchies
from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from evaluator_host.engine.service import Service
from evaluator_host.engine.system.processes import Command
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row, SandboxSpec
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import BACKENDS, settings
from tests.engines import engine_address
from tests.faults.scene import Scene, scene
from tests.indexes import Index
from tests.left_behind import cgroup_folders
from tests.packages import npm_package, wheel
from tests.relay import Relay
from tests.tools import copy_tools

OK = 200
_QUOTA_US = 5_000  # microseconds of processor time in each 100 ms: 5 % of a core

PYTHON = """
import time
def evaluate(inputs, outputs, trace):
    if outputs == "spin":
        while True: pass
    if outputs == "sleep":
        time.sleep(60)
    if outputs == "raise":
        raise ValueError("bad row")
    print(outputs)
    return sum(range(50_000)) % 7 / 7
"""
JAVASCRIPT = """
async function evaluate(inputs, outputs, trace) {
  if (outputs === "spin") for (;;);
  if (outputs === "sleep") await new Promise((resolve) => setTimeout(resolve, 60_000));
  if (outputs === "raise") throw new RangeError("bad row");
  console.log(outputs);
  return 0.25;
}
"""
TYPESCRIPT = JAVASCRIPT.replace(
    "(inputs, outputs, trace)", "(inputs: object, outputs: string, trace: object): Promise<number>"
)
CODE = {Language.PYTHON: PYTHON, Language.JAVASCRIPT: JAVASCRIPT}
SCORES = {Language.PYTHON: sum(range(50_000)) % 7 / 7, Language.JAVASCRIPT: 0.25}
WORDS = ("a", "raise", "spin", "b", "sleep", "c")
SPINS_AT_LOAD = {
    Language.PYTHON: "while True: pass\n",
    Language.JAVASCRIPT: "for (;;);\nfunction evaluate(i, o, t) { return 1 }",
}


class Machine:
    """Slows down or stops each sandbox of one service, as soon as the sandbox starts."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.links: list[tuple[Language, Link]] = []
        self.slow = False
        self.stops = 0  # number of sandboxes that are still to be stopped

    @contextlib.contextmanager
    def watching(self, monkeypatch: pytest.MonkeyPatch) -> Iterator["Machine"]:
        backend = self.service.pool.backend
        start = backend.start

        async def watched(spec: SandboxSpec) -> Link:
            link = await start(spec)
            self.links.append((spec.language, link))
            if self.slow:
                slow_down(link.first_pid)
            if self.stops:
                self.stops -= 1
                asyncio.get_running_loop().create_task(stopped(link))
            return link

        monkeypatch.setattr(backend, "start", watched)
        yield self


def slow_down(pid: int | None) -> None:
    """Give the sandbox of a process 5 % of a core."""
    file = cpu_file(pid, "cpu.cfs_quota_us", "cpu.max")
    file.write_text(f"{_QUOTA_US}" if file.name == "cpu.cfs_quota_us" else f"{_QUOTA_US} 100000")


def cpu_file(pid: int | None, *names: str) -> Path:
    """Return the path of the first of these files that exists in the cgroup of a process."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in ("cpu", ""):
            if name in controllers.split(",") and (found := find_hierarchies(Path("/proc/self")).get(name)):
                for file in (found.mount / path.lstrip("/") / one for one in names):
                    if file.exists():
                        return file
    pytest.fail("no cgroup limits the processor time of this sandbox")


async def stopped(link: Link, seconds: float = 4.0) -> None:
    """Stop all processes of a sandbox for some seconds, including processes that it starts during this time."""
    held: set[int] = set()
    try:
        for _ in range(int(seconds / 0.2)):
            first = link.first_pid
            # `first` must not be 0, because that would be the process group of this test
            for pid in (set(process_tree(first)) if first else set()) - held:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    held.add(pid)
            await asyncio.sleep(0.2)
    finally:
        for pid in held:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module", params=BACKENDS)
async def own_service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """A service that has not started any sandbox before the test."""
    own = settings(request.param, load_timeout_s=0.7, max_sandboxes_per_evaluator=1)
    async with open_engine(own) as opened:
        yield opened


@pytest.fixture
def machine(own_service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with Machine(own_service).watching(monkeypatch) as watched:
        yield watched


def languages(service: Service) -> tuple[Language, ...]:
    """Return both languages for bubblewrap, but only the cheaper language for Docker, because the host watches
    sandboxes of both backends in the same way.
    """
    return (Language.PYTHON,) if service.pool.backend.name == "docker" else tuple(CODE)


async def outcomes(service: Service, language: Language) -> list[EvaluationResult]:
    """Score rows together and alone, load code that never ends loading, and return all results."""
    evaluator = Evaluator(CODE[language], language, limits=Limits(timeout_s=0.3))
    rows = await service.evaluate_batch(evaluator, [Row(outputs=word) for word in WORDS])
    alone = await service.evaluate(evaluator, Row(outputs="d"))
    endless = await service.evaluate(Evaluator(SPINS_AT_LOAD[language], language), Row())
    return [*rows, alone, endless]


@pytest.mark.long
async def test_a_twentieth_of_a_core_changes_no_outcome(machine: Machine) -> None:
    tried, machine.slow = languages(machine.service), True
    results = await asyncio.gather(*(outcomes(machine.service, language) for language in tried))
    for language, found in zip(tried, results, strict=True):
        assert "".join(one.status[0] for one in found) == "sffsfssf"
        errors = [one.error for one in found if one.error]
        assert [error.code for error in errors] == ["user_exception", "timeout", "timeout", "timeout"]
        assert errors[1].message == "the row did not finish within 0.3 s"
        assert errors[-1].message == "loading the code did not finish within 0.7 s"
        scored = [(one.score, one.logs.stdout) for one in found if not one.error]
        assert scored == [(SCORES[language], f"{word}\n") for word in "abcd"]


@pytest.mark.long
async def test_a_row_that_computes_for_long_gives_way_until_it_has_ended(machine: Machine) -> None:
    evaluator = Evaluator(
        "def evaluate(i, o, t):\n    end = 50_000_000 * i['n']\n    while end > 0: end -= 1\n    return 1.0\n"
    )
    assert (await machine.service.evaluate(evaluator, Row(inputs={"n": 0}))).score == 1.0
    weight = cpu_file(machine.links[-1][1].first_pid, "cpu.shares", "cpu.weight")
    usual = int(weight.read_text())
    row = asyncio.create_task(machine.service.evaluate(evaluator, Row(inputs={"n": 1})))
    async with asyncio.timeout(60):
        while int(weight.read_text()) == usual:
            await asyncio.sleep(0.01)
    assert int(weight.read_text()) in (usual // 8, usual // 8 + 1)
    assert (await row).score == 1.0
    assert int(weight.read_text()) == usual


@pytest.mark.long
async def test_a_container_of_an_engine_elsewhere_is_judged_by_what_the_engine_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Relay(engine_address(), tcp=True) as relay:
        own = settings("docker").model_copy(update={"docker_host": relay.address})
        async with open_engine(own) as service:
            with Machine(service).watching(monkeypatch) as machine:
                evaluator = Evaluator(PYTHON.replace("50_000", "30_000_000"), limits=Limits(timeout_s=1.5))
                assert (await service.evaluate(evaluator, Row(outputs="quiet"))).error is None
                ((_, link),) = machine.links
                assert (link.first_pid, link.far) == (None, True)
                with closing(docker.APIClient(engine_address())) as client:
                    slow_down(client.inspect_container(link.id)["State"]["Pid"])
                began = time.monotonic()
                assert (await service.evaluate(evaluator, Row(outputs="slow"))).error is None
                assert time.monotonic() - began > 1.5, "in wall-clock time, the row must take longer than its limit"
                for word in ("spin", "sleep"):
                    error = (await service.evaluate(evaluator, Row(outputs=word))).error
                    assert error is not None
                    assert (error.code, error.message) == ("timeout", "the row did not finish within 1.5 s"), word


async def test_sandboxes_that_are_stopped_for_longer_than_their_limits_answer_rightly(machine: Machine) -> None:
    tried = languages(machine.service)
    await asyncio.gather(*(_stopped_twice(machine.service, language, machine) for language in tried))


async def _stopped_twice(service: Service, language: Language, machine: Machine) -> None:
    machine.stops += 1
    assert (await service.evaluate(sleeper(language), Row(inputs={"s": 0}))).score == 0.5, (
        "the row must score although its sandbox was stopped while it loaded"
    )
    row = asyncio.ensure_future(service.evaluate(sleeper(language), Row(inputs={"s": 2})))
    await asyncio.sleep(1)
    links = [link for of, link in machine.links if of is language and link.first_pid and not link.ended]
    await asyncio.gather(*(stopped(link) for link in links))
    assert (await row).score == 0.5, "the row must score although its sandbox was stopped in the middle"


def sleeper(language: Language) -> Evaluator:
    """Return an evaluator that sleeps for the number of seconds in its row; its time limit is three seconds."""
    code = {
        Language.PYTHON: "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(inputs['s'])\n    return 0.5\n",
        Language.JAVASCRIPT: _SLEEPS,
    }
    return Evaluator(code[language], language, limits=Limits(timeout_s=3.0))


_SLEEPS = """async function evaluate(inputs, outputs, trace) {
  await new Promise((resolve) => setTimeout(resolve, 1000 * inputs.s));
  return 0.5;
}
"""


PACKAGE_CODE = {
    "python": "import held\ndef evaluate(inputs, outputs, trace):\n    return held.value\n",
    "javascript": "import { value } from 'holds';\nexport function evaluate(inputs, outputs, trace) { return value; }\n",
}
PINS = {"python": "held==1.0.0", "javascript": "holds@1.0.0"}
ROWS = (*WORDS, *"defghij")


@contextlib.contextmanager
def starved(host: Scene) -> Iterator[None]:
    """Give a running host and its child processes 5 % of a core, and all its sandboxes together another 5 %."""
    found = find_hierarchies(Path("/proc/self"))["cpu"]
    group = found.own / f"busy-{host.pid}"
    sandboxes = list[Path]()
    group.mkdir()
    try:
        (group / "cpu.cfs_quota_us").write_text(str(_QUOTA_US))
        sandboxes = [home for home in cgroup_folders(f"host-*-{host.pid}-") if home.parent == found.own]
        for home in sandboxes:
            # this may fail at first, because no group inside may have a higher limit, and each start makes a new group
            for _ in range(100):
                for each in home.glob("*/cpu.cfs_quota_us"):
                    each.write_text("-1")
                with contextlib.suppress(OSError):
                    (home / "cpu.cfs_quota_us").write_text(str(_QUOTA_US))
                    break
                time.sleep(0.05)
            assert (home / "cpu.cfs_quota_us").read_text().strip() == str(_QUOTA_US), list(
                home.glob("*/cpu.cfs_quota_us")
            )
        (group / "cgroup.procs").write_text(str(host.pid))
        assert sandboxes
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (found.own / "cgroup.procs").write_text(pid)
        for home in sandboxes:
            (home / "cpu.cfs_quota_us").write_text("-1")
        group.rmdir()


def worked(host: Scene) -> dict[str, object]:
    """Run a job, a call, and in each language a call with a new package set; return the parts of the results that must
    not differ.
    """
    post, get = host.server.client.post, host.server.client.get
    written = {**CODE, Language.TYPESCRIPT: TYPESCRIPT}
    evaluators = [
        {"code": code, "language": language, "limits": {"timeout_s": 0.3}} for language, code in written.items()
    ]
    rows = [{"inputs": {}, "outputs": word} for word in ROWS]
    job = post("/v1/jobs", json={"evaluators": evaluators, "dataset": {"rows": rows}}).json()["id"]
    sets = [
        post("/v1/evaluate", json={"evaluator": {"code": code, "language": language, "packages": [PINS[language]]}})
        for language, code in PACKAGE_CODE.items()
    ]
    alone = [post("/v1/evaluate", json={"evaluator": one, "outputs": "x"}) for one in evaluators]
    until = time.monotonic() + 240
    while (report := get(f"/v1/jobs/{job}").json())["status"] not in ("completed", "failed", "paused"):
        assert time.monotonic() < until, report
        time.sleep(0.5)
    lines = [json.loads(line) for line in get(f"/v1/jobs/{job}/rows.jsonl").text.splitlines()]
    return {
        "sets": [(answer.status_code, answer.json().get("score")) for answer in sets],
        "alone": [answer.json().get("score") for answer in alone],
        "job": [report["status"], report["progress"]["done"], report["progress"]["failed"]],
        "rows": sorted(
            (line["index"], line["result"]["status"], (line["result"]["error"] or {}).get("code", "")) for line in lines
        ),
    }


@pytest.mark.long
def test_a_host_with_a_twentieth_of_a_core_does_what_it_does_else(tmp_path: Path) -> None:
    data = tmp_path / "data"
    copy_tools(data)
    with Index() as index:
        index.add_python(wheel("held", {"held.py": "value = 0.5\n"}))
        index.add_npm(npm_package("holds", {"index.js": "exports.value = 0.5;\n"}))
        environment = {
            "EVALUATOR_HOST_PIP_INDEX_URL": index.pip_url,
            "EVALUATOR_HOST_NPM_REGISTRY": index.npm_url,
            "EVALUATOR_HOST_NO_PROXY": "127.0.0.1",
            "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{data}/host.db",
        }
        with scene(tmp_path, data_dir=data, environment=environment) as host:
            host.server.client.timeout = 300
            assert host.evaluate().status_code == OK
            with starved(host):
                busy = worked(host)
    errors = {"raise": "user_exception", "spin": "timeout", "sleep": "timeout"}
    ended = [(at, "failed" if word in errors else "scored", errors.get(word, "")) for at, word in enumerate(ROWS)]
    assert busy == {
        "sets": [(OK, 0.5)] * 2,
        "alone": [*SCORES.values(), SCORES[Language.JAVASCRIPT]],
        "job": ["completed", 39, 9],
        "rows": sorted(ended * 3),
    }


@pytest.mark.long
async def test_a_plain_build_has_its_time_though_it_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_sandbox(_: Builder) -> str:
        return "no bubblewrap"

    monkeypatch.setattr(Builder, "_find", no_sandbox)
    (tmp_path / "build").mkdir()
    builder, pid = Builder(tmp_path / "build", file_mb=100), tmp_path / "pid"
    stops = f"import os, signal\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n"
    stops += "os.kill(os.getpid(), signal.SIGSTOP)\nprint('went on')"
    build = asyncio.ensure_future(builder.run(python(stops, tmp_path), 1.0))
    while not (pid.exists() and pid.read_text() and is_stopped(int(pid.read_text()))):
        await asyncio.sleep(0.05)
    await asyncio.sleep(2.5)
    assert not build.done(), "the time limit must not count the time in which the build is stopped"
    os.kill(int(pid.read_text()), signal.SIGCONT)
    assert (await build).stdout == "went on\n"
    with pytest.raises(TimeoutError):
        await builder.run(python("while True: pass", tmp_path), 0.5)


def python(code: str, folder: Path) -> Command:
    return Command((sys.executable, "-c", code), folder, {})


def is_stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED
