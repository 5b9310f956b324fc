"""`make bench`: measures and prints the table of docs/performance.md, and writes it as JSON. Beside each figure is its
floor, which is what the bare mechanism costs.
"""

import argparse
import asyncio
import json
import operator
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import httpx
import uvloop
from rich.console import Console
from rich.table import Table

from evaluator_host.engine.backends import build_images
from evaluator_host.engine.config.settings import SandboxChoice, SandboxStart, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.platform.wires.table import wires as all_wires
from evaluator_host.types.evaluator import Isolation, Language
from tests.benchmarks import (
    capacity,
    engines,
    figures,
    floors,
    jobs,
    models,
    nemo,
    packages,
    pages,
    peers,
    ratios,
    rewards,
    tenants,
    wires,
    workers,
)
from tests.benchmarks.figures import p50
from tests.engines import docker_command, engine_address
from tests.model_server import ModelServer

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
Add: TypeAlias = Callable[..., None]
_MEETS: dict[str, Callable[[float, float], bool]] = {"≤": operator.le, "≥": operator.ge}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a measured figure, the floor with which it is compared, and the limit for it or for the ratio."""

    figure: str
    value: float
    unit: str
    against: str
    floor: float | None
    sense: str
    bar: float | None

    @property
    def judged(self) -> float:
        """The number that is compared with the limit: the ratio if there is a floor, otherwise the figure."""
        return self.value / self.floor if self.floor else self.value

    @property
    def met(self) -> bool:
        """Whether the figure is within its limit, or has no limit."""
        return self.bar is None or _MEETS[self.sense](self.judged, self.bar)


async def measure(settings: Settings, parts: Collection[str]) -> list[Line]:
    """Measure some of `PARTS`, and show the progress on stderr."""
    lines: list[Line] = []

    def add(
        figure: str,
        value: float,
        unit: str,
        sense: str,
        bar: float | None,
        against: str = "",
        floor: float | None = None,
    ) -> None:
        lines.append(Line(figure, value, unit, against, floor, sense, bar))
        beside = f" ({against} {floor:.2f})" if floor else ""
        print(f"  {figure}: {value:.2f} {unit}{beside}", file=sys.stderr)

    for part in parts:
        await PARTS[part](settings, add)
    return lines


async def _of_the_service(settings: Settings, add: Add) -> None:
    fork_ms = p50(floors.fork_server_ms())
    async with open_engine(settings, prewarm=True) as service:
        python_ms = p50(await figures.warm_call_ms(service, PYTHON))
        again_ms = p50(floors.fork_server_ms())
        floor_ms = (fork_ms + again_ms) / 2
        add("warm call, Python, in the service", python_ms, "ms", "≤", 2.0, "bare fork server", floor_ms)
        add(
            "warm call, JavaScript, in the service",
            p50(await figures.warm_call_ms(service, JAVASCRIPT)),
            "ms",
            "≤",
            3.0,
        )
        fork_rows = floors.fork_server_rows_per_s()
        rows = await figures.rows_per_s(service, PYTHON, Isolation.ROW, 4000)
        add("rows/s, isolation row, Python", rows, "rows/s", "≥", 0.6, "bare fork servers, all cores", fork_rows)
        for language in (JAVASCRIPT, TYPESCRIPT):
            rows = await figures.rows_per_s(service, language, Isolation.ROW, 4000)
            add(f"rows/s, isolation row, {language}", rows, "rows/s", "≥", 1000)
        for language in (PYTHON, JAVASCRIPT):
            rows = await figures.rows_per_s(service, language, Isolation.BATCH, 40_000)
            add(f"rows/s, isolation batch, {language}", rows, "rows/s", "≥", 10_000)
        for language in (PYTHON, JAVASCRIPT):
            taken = p50(await figures.after_timeout_ms(service, language))
            add(f"next call after a time-out, {language}", taken, "ms", "≤", 100)
        for language in (PYTHON, JAVASCRIPT, TYPESCRIPT):
            taken = p50(await figures.first_call_ms(service, language, idle=True))
            add(f"first call, idle sandbox waiting, {language}", taken, "ms", "≤", 20)
        add("host growth over 100,000 rows", await figures.many_rows_growth_mb(service), "MB", "≤", 100)


async def _of_idle_sandboxes(settings: Settings, add: Add) -> None:
    add("bare bubblewrap + interpreter", p50(floors.bubblewrap_ms()), "ms", "≤", 1000)
    for language, bar in ((PYTHON, 20), (JAVASCRIPT, 60)):
        add(f"idle sandbox, {language}", await figures.idle_sandbox_mb(settings, language), "MB", "≤", bar)


async def _of_jobs(settings: Settings, add: Add) -> None:
    for isolation, bar, few in ((Isolation.ROW, 0.9, 4000), (Isolation.BATCH, 0.65, jobs.ROWS)):
        async with open_engine(settings, prewarm=True) as service:
            bare = await figures.rows_per_s(service, PYTHON, isolation, few)
        ran = await asyncio.to_thread(jobs.run, jobs.ROWS, isolation)
        name = f"rows/s of a job of {jobs.ROWS:,} rows, isolation {isolation}"
        add(name, ran.rows_per_s, "rows/s", "≥", bar, "in the service, nothing kept", bare)
    add(f"host's peak in a job of {jobs.ROWS:,} rows", ran.peak_mb, "MB", "≤", 250)
    many = await asyncio.to_thread(jobs.run, jobs.MANY_ROWS, Isolation.BATCH)
    name = f"rows/s of a job of {jobs.MANY_ROWS:,} rows, isolation batch"
    add(name, many.rows_per_s, "rows/s", "≥", 0.65, "in the service, nothing kept", bare)
    add(
        f"host's peak in a job of {jobs.MANY_ROWS:,} rows", many.peak_mb, "MB", "≤", 1.25, f"{jobs.ROWS:,}", ran.peak_mb
    )


async def _of_packages(settings: Settings, add: Add) -> None:
    async with open_engine(settings) as service:
        taken = {pins: p50(values) for pins, values in (await packages.first_calls_ms(service)).items()}
    for pins in (packages.NUMPY, packages.PANDAS):
        name = f"first call, idle sandbox waiting, {' '.join(pin.partition('=')[0] for pin in pins)} set"
        add(name, taken[pins], "ms", "≤", 2.0, "without packages", taken[()])
    for language, tool in ((PYTHON, "uv pip install"), (JAVASCRIPT, "npm ci")):
        built = await packages.installs(settings, language)
        bare_ms = p50(packages.bare_install_ms(settings, language, lock=built[0].lock))
        add(f"install, warm downloads, {language}", p50([one.files_ms for one in built]), "ms", "≤", 2.0, tool, bare_ms)
        add(f"install and check, {language}", p50([one.whole_ms for one in built]), "ms", "≤", None, tool, bare_ms)
    requests = await packages.requests_of_an_installed_set(settings)
    add("network requests, an installed set again", requests, "", "≤", 0)


async def _of_nemo(settings: Settings, add: Add) -> None:
    async with open_engine(settings, prewarm=True) as service:
        light, real = await nemo.light_packages(service), await nemo.real_packages(service)
        taken_s, worked_s = nemo.import_s(light)
        add("import of the light NeMo modules, cold", taken_s, "s", "≤", 0.4)
        add("processor time of that import", worked_s, "s", "≤", 0.4)
        own, theirs = [], []
        for _ in range(5):  # measured in several rounds, because the machine may have other work
            own.append(await nemo.rows_s(service, Isolation.BATCH))
            theirs.append(await asyncio.to_thread(nemo.real_s, real))
        name = f"{nemo.ROWS:,} rows of a NeMo metric, isolation"
        add(f"{name} batch", min(own), "s", "≤", 1.0, "NeMo's own local evaluator", min(theirs))
        process_s = min(nemo.process_ms(light)) * nemo.ROWS / 1000
        add(f"{name} batch", min(own), "s", "≤", 1 / 20, "a fresh process for each", process_s)
        row_s = await nemo.rows_s(service, Isolation.ROW, 1000) * nemo.ROWS / 1000
        add(f"{name} row", row_s, "s", "≤", 1 / 20, "a fresh process for each", process_s)


async def _against_docker(settings: Settings, add: Add) -> None:
    engine = settings.model_copy(update={"sandbox": SandboxChoice.DOCKER, "docker_host": engine_address()})
    await build_images(engine, base=None, progress=lambda line: print(f"  {line}", file=sys.stderr))
    command = docker_command()
    exec_ms = p50(floors.docker_exec_ms(command, engine.docker_image))
    run_ms = p50(floors.docker_run_ms(command, engine.docker_image))
    for name, its in (("bubblewrap", settings), ("docker", engine)):
        process, port = await _serve(its)
        try:
            for language in (PYTHON, JAVASCRIPT):
                taken = p50(figures.warm_http_ms(port, language))
                add(f"warm call over HTTP, {language}, {name}", taken, "ms", "≤", 1 / 20, "docker exec", exec_ms)
                add(f"warm call over HTTP, {language}, {name}", taken, "ms", "≤", 1 / 50, "docker run", run_ms)
        finally:
            process.terminate()
            process.wait(30)
    for language in (PYTHON, JAVASCRIPT, TYPESCRIPT):
        async with open_engine(settings.model_copy(update={"idle_sandboxes": 0}), prewarm=True) as service:
            taken = p50(await figures.first_call_ms(service, language, idle=False))
        add(f"first call, nothing waiting, {language}", taken, "ms", "≤", 1 / 5, "docker run", run_ms)


async def _of_first_calls(settings: Settings, add: Add) -> None:
    forked = settings.model_copy(update={"sandbox_start": SandboxStart.TEMPLATE})
    name = "first call, nothing waiting, processor time"
    ways = {f"{name}, {language}": (settings, language) for language in (PYTHON, JAVASCRIPT, TYPESCRIPT)}
    ways[f"{name}, {PYTHON}, template"] = (forked, PYTHON)
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(5):  # measured in several rounds, because the machine may have other work
        for way, (its, language) in ways.items():
            taken[way].append(await figures.first_call_processor_ms(its, language))
    fresh_ms = p50(taken[f"{name}, {PYTHON}"])
    for way, each_ms in taken.items():
        add(way, p50(each_ms), "ms", "≤", 20 if PYTHON in way else None)
    add(f"{name}, {PYTHON}, template", p50(taken[f"{name}, {PYTHON}, template"]), "ms", "≤", 1 / 1.5, "fresh", fresh_ms)
    for language in (PYTHON, JAVASCRIPT, TYPESCRIPT):
        by_clock, worked = await figures.waiting_call_ms(settings, language)
        name = f"first call, idle sandbox waiting, no replacement, {language}"
        add(name, p50(by_clock), "ms", "≤", 20)
        add(f"{name}, processor time", sum(worked) / len(worked), "ms", "≤", None)


async def _of_tenants(settings: Settings, add: Add) -> None:
    async with open_engine(settings, prewarm=True) as service:
        for count in (10, 100, 500):
            many = tenants.evaluators(count)
            await tenants.load(service, tenants.round_robin(many, count))
            found, one = await tenants.beside_one(service, list(tenants.round_robin(many, 1000)))
            name = f"{count} evaluators, round robin"
            add(f"{name}, calls/s", found.calls_per_s, "calls/s", "≥", 0.8, "one evaluator", one.calls_per_s)
            add(f"{name}, warm", found.warm, "", "≥", 0.98)
    async with open_engine(settings, prewarm=True) as service:
        many = tenants.evaluators(tenants.ZIPF_EVALUATORS)
        await tenants.load(service, tenants.zipf(many, 3000))
        found, one = await tenants.beside_one(service, list(tenants.zipf(many, 2000)))
        name = f"{len(many):,} evaluators, Zipf {tenants.ZIPF_EXPONENT}"
        add(f"{name}, calls/s", found.calls_per_s, "calls/s", "≥", 0.8, "one evaluator", one.calls_per_s)
        add(f"{name}, warm", found.warm, "", "≥", 0.9)


async def _of_peers(settings: Settings, add: Add) -> None:
    process, port = await _serve(settings)
    try:
        for work, row, rounds in (("exact match", floors.ROW, 200), ("4 MB of inputs", _large_row(), 20)):
            with ExitStack() as stack:
                ports = {name: port + 1000 + number for number, name in enumerate(peers.available())}
                pids = {name: stack.enter_context(peers.serving(name, of)) for name, of in ports.items()}
                pids[peers.HOST] = process.pid
                given, every = {name: value for name, value in row.items() if value is not None}, {peers.HOST: port}
                taken = await asyncio.to_thread(peers.call_ms, every | ports, given, rounds=rounds)
                for name, pid in pids.items() if row is floors.ROW else ():
                    add(f"memory while it waits, {name}", figures.pss_mb(pid), "MB", "≤", None)
            for name in ports:
                bar = 1.3 if name.startswith("bare fork") and row is not floors.ROW else None
                add(f"warm call over HTTP, {work}", taken[peers.HOST], "ms", "≤", bar, name, taken[name])
    finally:
        process.terminate()
        process.wait(30)


async def _of_rewards(settings: Settings, add: Add) -> None:
    ours, alone, isolated = [], [], []
    async with open_engine(settings) as service:
        for _ in range(3):  # measured in several rounds, because the machine may have other work
            ours.append(await rewards.recipe_ms(service))
            alone.append(await asyncio.to_thread(rewards.process_ms))
            isolated.append(await asyncio.to_thread(rewards.sandbox_ms))
        name = "hidden test of a code answer, processor time"
        add(name, p50(ours), "ms", "≤", 2.0, "a process, without isolation", p50(alone))
        add(name, p50(ours), "ms", "≤", 1.2, "a process in namespaces of its own", p50(isolated))
        rows = await rewards.rows_per_min(service)
        name = f"code answers of {len(rewards.TESTS)} tests, one in twenty hostile, by processor time of two cores"
        add(name, rows, "rows/min", "≥", 1000)


async def _of_wires(settings: Settings, add: Add) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {
            "EVALUATOR_HOST_WIRES": ",".join(all_wires()),
            "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder}/host.db",
        }
        process, port = await _serve(settings, **named)
        try:
            for name, pair in (await asyncio.to_thread(wires.pairs, port)).items():
                wire_ms, own_ms = await asyncio.to_thread(wires.overhead_ms, port, process.pid, pair)
                add(f"wire {name}, processor time of a warm call", wire_ms, "ms", "≤", 1.15, "own route", own_ms)
            ours, theirs = await asyncio.to_thread(wires.opik_ms, port)
            add("wire opik, warm call", ours, "ms", "≤", None, "Opik's package in a waiting process", theirs)
            ours, theirs = await asyncio.to_thread(wires.langfuse_ms, port, Path(folder))
            add("wire langfuse, warm call, TypeScript", ours, "ms", "≤", None, "node:vm, as insecure-local", theirs)
            ours, theirs = await asyncio.to_thread(wires.promptfoo_ms, port, Path(folder))
            add("wire webhook, promptfoo's assertion", ours, "ms", "≤", None, "its own assertion in Python", theirs)
        finally:
            process.terminate()
            process.wait(30)


async def _of_models(settings: Settings, add: Add) -> None:
    key = "sk-bench-0123456789"
    with tempfile.TemporaryDirectory() as folder, ModelServer(key=key) as provider:
        named = {
            "EVALUATOR_HOST_MODELS": json.dumps({"judge": {"base_url": provider.url, "key": key}}),
            "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder}/host.db",
        }
        process, port = await _serve(settings, **named)
        try:
            taken = await asyncio.to_thread(models.overhead_ms, port, process.pid, provider.url, key)
        finally:
            process.terminate()
            process.wait(30)
    for name, (through, direct) in taken.items():
        figure = "time" if name == "time" else "processor time"
        add(f"request to a granted model, {figure} over a direct one", through - direct, "ms", "≤", 3.0)


async def _of_capacity(settings: Settings, add: Add) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {
            "EVALUATOR_HOST_MAX_SANDBOXES": "32",
            "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder}/host.db",
        }
        process, port = await _serve(settings, **named)
        try:
            add("the host itself", figures.pss_mb(process.pid), "MB", "≤", None)
            for language in (PYTHON, JAVASCRIPT):
                spent = await asyncio.to_thread(capacity.spent_ms, port, process.pid, language)
                for what, taken in spent.items():
                    name = "calls" if what == "call" else f"rows, isolation {what}"
                    add(f"{name} of one core, {language}", 1000 / taken, "/s", "≥", None)
                taken = await asyncio.to_thread(capacity.evaluator_mb, port, process.pid, language)
                add(f"one more warm evaluator, {language}", taken, "MB", "≤", None)
        finally:
            process.terminate()
            process.wait(30)


async def _of_workers(settings: Settings, add: Add) -> None:
    answering = settings.model_copy(update={"sandbox": SandboxChoice.NONE})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        hosts: dict[str, tuple[int, int]] = {}
        for name in ("real", "1", "2", "4"):
            its, module = (settings, "evaluator_host") if name == "real" else (answering, "tests.benchmarks.workers")
            named = {
                "EVALUATOR_HOST_MAX_SANDBOXES": "128",
                "EVALUATOR_HOST_WORKERS": "1" if name == "real" else name,
                "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder}/{name}.db",
            }
            process, port = await _serve(its, module=module, place=len(hosts), **named)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            hosts[name] = port, process.pid
        found = await asyncio.to_thread(workers.spent, hosts)
    real, one = found.pop("real"), found["1"]
    add("processor time of a call, sandbox", real.sandboxes_ms, "ms", "≤", None)
    add("processor time of a call, host of 1", one.own_ms, "ms", "≤", None, "with real sandboxes", real.own_ms)
    whole_ms = {count: taken.own_ms + real.sandboxes_ms for count, taken in found.items()}
    for count, taken in found.items():
        add(f"calls/s by the clock, host of {count}", taken.calls_per_s, "calls/s", "≥", None)
        if taken is not one:
            add(f"processor time of a call, host of {count}", taken.own_ms, "ms", "≤", None, "1", one.own_ms)
            name, bar = f"the same with the sandbox, host of {count}", 1.1 if count == "2" else None
            add(name, whole_ms[count], "ms", "≤", bar, "1", whole_ms["1"])
    for count, cores in (("1", 4), ("2", 4), ("1", 8), ("4", 8)):
        taken, bar = found[count], None if count == "1" else 1.0
        all_cores = f"all of {cores} cores", cores * 1000 / whole_ms[count]
        add(f"computed calls/s, busiest of {count}", 1000 / taken.busiest_ms, "calls/s", "≥", bar, *all_cores)
        if bar is not None:
            even = 1000 * int(count) / taken.own_ms
            add(f"computed calls/s, {count} used evenly", even, "calls/s", "≥", bar, *all_cores)


async def _of_engines(settings: Settings, add: Add) -> None:
    for isolation, bar in ((Isolation.ROW, 0.9), (Isolation.BATCH, 0.8)):
        found = await asyncio.to_thread(engines.rates, settings.data_dir, isolation)
        alone = found.pop("alone").rows_per_s
        for name, rate in found.items():
            figure = f"rows/s over {name}, isolation {isolation}"
            add(figure, rate.rows_per_s, "rows/s", "≥", bar, "the pool alone", alone)
            add(f"first {engines.BATCH} rows over {name}, isolation {isolation}", rate.first_s, "s", "≤", None)


async def _of_pages(settings: Settings, add: Add) -> None:
    with tempfile.TemporaryDirectory() as folder:
        process, port = await _serve(settings, EVALUATOR_HOST_DATABASE_URL=f"sqlite:///{folder}/host.db")
        try:
            url = f"http://127.0.0.1:{port}"
            found = await pages.loads(url, await asyncio.to_thread(pages.addresses, url))
        finally:
            process.terminate()
            process.wait(30)
    empty_ms = p50(found.pop(pages.EMPTY).paint_ms)
    add("first paint of an empty page", empty_ms, "ms", "≤", None)
    for path, its in found.items():
        add(f"first paint of {path}", p50(its.paint_ms), "ms", "≤", 100)
        add(f"all of {path} shown", p50(its.shown_ms), "ms", "≤", None)
        add(f"processor time of {path}", p50(its.worked_ms), "ms", "≤", None)
        add(f"script until all of {path} is shown", p50(its.script_kb), "kB", "≤", 120)


def _large_row() -> dict[str, object]:
    text = 'Paris is the capital of France, 12345 people say. "yes"\n' * 80_000
    return {"inputs": {"correct_answer": text[:10], "text": text[: 4 << 20]}, "outputs": text[:10]}


PARTS: dict[str, Callable[[Settings, Add], Awaitable[None]]] = {
    "service": _of_the_service,
    "packages": _of_packages,
    "sandboxes": _of_idle_sandboxes,
    "jobs": _of_jobs,
    "nemo": _of_nemo,
    "first": _of_first_calls,
    "tenants": _of_tenants,
    "peers": _of_peers,
    "rewards": _of_rewards,
    "wires": _of_wires,
    "models": _of_models,
    "engines": _of_engines,
    "capacity": _of_capacity,
    "workers": _of_workers,
    "pages": _of_pages,
    "docker": _against_docker,
}


async def _serve(
    settings: Settings, *, module: str = "evaluator_host", place: int = 0, **variables: str
) -> tuple["subprocess.Popen[bytes]", int]:
    """Start one of several hosts, with the number `place`. Return the host's first process and its port."""
    port = 18_710 + os.getpid() % 1000 + 1000 * place
    environment = {**os.environ, "EVALUATOR_HOST_DOCKER_HOST": settings.docker_host or "", **variables}
    if not settings.docker_host:
        del environment["EVALUATOR_HOST_DOCKER_HOST"]
    command = [sys.executable, "-m", module, "serve", "--port", str(port)]
    command += ["--data-dir", str(settings.data_dir), "--sandbox", str(settings.sandbox)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(1200):  # wait for up to a minute, because the machine may have other work
            await asyncio.sleep(0.1)
            try:
                await client.get("/readyz")
            except httpx.TransportError:
                assert process.poll() is None, "the server ended before it was ready"
            else:
                return process, port
    process.kill()
    raise TimeoutError("the server did not start in time")


def show(lines: list[Line]) -> None:
    table = Table(title=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in ("figure", "measured", "floor", "ratio", "bar", ""):
        table.add_column(name, justify="left" if name == "figure" else "right")
    for line in lines:
        floor = f"{line.against} {line.floor:.2f}" if line.floor else ""
        ratio = f"{line.judged:.3f}" if line.floor else ""
        table.add_row(
            line.figure,
            f"{line.value:,.2f} {line.unit}",
            floor,
            ratio,
            f"{line.sense} {line.bar:,.3g}" if line.bar is not None else "",
            "" if line.bar is None else "met" if line.met else "[red]missed[/red]",
        )
    Console(width=150).print(table)


def main() -> None:
    """Run the benchmarks, print the table, and write `bench-results/<time>.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-docker", action="store_true", help="leave out the measurements that need a Docker engine")
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="measure only this part; can be given several times"
    )
    parser.add_argument("--data-dir", type=Path, default=Path("/var/tmp/evaluator-host-tests/data"))
    parser.add_argument(
        "--quick", action="store_true", help="measure only the ratios that a test compares, in two minutes"
    )
    options = parser.parse_args()
    settings = Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=options.data_dir)
    if options.quick:
        raise SystemExit("\n".join(ratios.check(settings)) or 0)
    parts = options.only or [part for part in PARTS if part != "docker" or not options.no_docker]
    lines = uvloop.run(measure(settings, parts))  # the same event loop as in `serve`
    show(lines)
    target = Path("bench-results")
    target.mkdir(exist_ok=True)
    report = [{**asdict(line), "judged": line.judged, "met": line.met} for line in lines]
    (target / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
