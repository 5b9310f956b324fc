"""Measures the service: each function returns one measured value, or all samples of the value, as plain numbers."""

import asyncio
import contextlib
import json
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import psutil

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.service import default_spec
from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Limits, Row
from evaluator_host.types.outcome import Status
from tests.benchmarks.floors import EXACT_MATCH, ROW
from tests.processes import resident_mb

_JS = "function evaluate(inputs, outputs, trace) { return outputs === inputs.correct_answer ? 1.0 : 0.0 }\n"
_TS = "function evaluate(inputs: any, outputs: any, trace: any): number { return outputs === inputs.correct_answer ? 1 : 0 }\n"
CODE = {Language.PYTHON: EXACT_MATCH, Language.JAVASCRIPT: _JS, Language.TYPESCRIPT: _TS}
THE_ROW = Row(inputs=ROW["inputs"], outputs=ROW["outputs"])


async def warm_call_ms(service: Service, language: Language, times: int = 400) -> list[float]:
    """Return how many milliseconds a warm call takes inside the service, without HTTP."""
    evaluator = Evaluator(CODE[language], language)
    taken = []
    for number in range(times + 20):
        started = time.perf_counter()
        result = await service.evaluate(evaluator, THE_ROW)
        taken.append((time.perf_counter() - started) * 1000)
        assert result.score == 1.0, result.error
        assert number == 0 or result.sandbox.warm
    return taken[20:]


def warm_http_ms(port: int, language: Language, times: int = 300) -> list[float]:
    """Return how many milliseconds a warm call over HTTP takes, on one connection that stays open."""
    body = {"evaluator": {"code": CODE[language], "language": language}, "inputs": ROW["inputs"], "outputs": "Paris"}
    content, headers = json.dumps(body), {"Content-Type": "application/json"}
    taken = []
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        for _ in range(times + 20):
            started = time.perf_counter()
            connection.request("POST", "/v1/evaluate", content, headers)
            answer = json.loads(connection.getresponse().read())
            taken.append((time.perf_counter() - started) * 1000)
            assert answer["score"] == 1.0, answer
    return taken[20:]


async def first_call_ms(service: Service, language: Language, *, idle: bool, times: int = 12) -> list[float]:
    """Return how many milliseconds the first call of a new evaluator takes; with `idle`, a started sandbox waits for
    the call.
    """
    taken = []
    for number in range(times):
        if idle:
            await asyncio.sleep(0.3)  # the host replaces the prewarmed sandbox during this time
        comment = "#" if language is Language.PYTHON else "//"
        code = CODE[language] + f"{comment} {time.time_ns()} {number}\n"
        started = time.perf_counter()
        result = await service.evaluate(Evaluator(code, language), THE_ROW)
        taken.append((time.perf_counter() - started) * 1000)
        assert result.score == 1.0, result.error
        assert not result.sandbox.warm
    return taken


async def first_call_processor_ms(settings: Settings, language: Language, times: int = 12) -> float:
    """Return how many milliseconds of processor time host and sandbox use for a first call, if no sandbox was started
    in advance for this call. The end of the sandbox is not counted.

    Processes that have ended inside a sandbox, such as those of earlier rows, are counted in steps of 10 ms, mostly as
    0.
    """
    async with open_engine(settings.model_copy(update={"idle_sandboxes": 0})) as service:
        await first_call_ms(service, language, idle=False, times=1)
        before = running_ms()
        await first_call_ms(service, language, idle=False, times=times)
        return (running_ms() - before) / times


async def waiting_call_ms(settings: Settings, language: Language, times: int = 8) -> tuple[list[float], list[float]]:
    """Return how many milliseconds first calls take if a sandbox waits for them, as two lists: clock time, and
    processor time of all processes.

    The host has room for only one sandbox, so that no replacement starts during the call.
    """
    alone = settings.model_copy(update={"idle_sandboxes": 1, "max_sandboxes": 1})
    by_clock, worked = [], []
    for _ in range(times):
        async with open_engine(alone) as service:
            await service.pool.prewarm(default_spec(language, settings))
            await asyncio.sleep(0.5)  # the host prepares a sandbox in advance during this time
            before = running_ms()
            by_clock += await first_call_ms(service, language, idle=False, times=1)
            worked.append(running_ms() - before)
    return by_clock, worked


def running_ms() -> float:
    """Return the processor time of this process and all its descendants in milliseconds, exact to the microsecond."""
    total_ms, line = 0.0, [os.getpid()]
    while line:
        pid = line.pop()
        with contextlib.suppress(OSError, psutil.NoSuchProcess):  # the process has just ended
            for task in Path(f"/proc/{pid}/task").iterdir():
                total_ms += int((task / "schedstat").read_text().split()[0]) / 1e6
                line += map(int, (task / "children").read_text().split())
            ended = psutil.Process(pid).cpu_times()
            total_ms += (ended.children_user + ended.children_system) * 1000
    return total_ms


async def rows_per_s(service: Service, language: Language, isolation: Isolation, rows: int) -> float:
    """Return how many rows per second one stream of exact-match rows reaches."""
    evaluator = Evaluator(CODE[language], language)

    def source() -> Iterator[Row]:
        for _ in range(rows):
            yield THE_ROW

    started, scored = time.perf_counter(), 0
    async for _, result in service.evaluate_rows(evaluator, source(), isolation=isolation):
        scored += result.status is Status.SCORED
    assert scored == rows
    return rows / (time.perf_counter() - started)


async def after_timeout_ms(service: Service, language: Language, times: int = 5) -> list[float]:
    """Return how many milliseconds a call takes right after a row of the same evaluator has reached the time limit."""
    loop = {
        Language.PYTHON: "def evaluate(i, o, t):\n    while o == 'loop': pass\n    return 1.0\n",
        Language.JAVASCRIPT: "function evaluate(i, o, t) { while (o === 'loop'); return 1.0 }\n",
    }[language]
    evaluator = Evaluator(loop, language, limits=Limits(timeout_s=0.3))
    await service.evaluate(evaluator, Row())
    taken = []
    for _ in range(times):
        result = await service.evaluate(evaluator, Row(outputs="loop"))
        assert result.error is not None
        assert result.error.code == "timeout"
        started = time.perf_counter()
        assert (await service.evaluate(evaluator, Row())).score == 1.0
        taken.append((time.perf_counter() - started) * 1000)
    return taken


async def idle_sandbox_mb(settings: Settings, language: Language) -> float:
    """Return how many MB of memory (proportional set size) a started sandbox takes, as the mean of three sandboxes.

    The first sandbox is not counted, since its memory includes the interpreter's pages, which all sandboxes share.
    """
    three = settings.model_copy(update={"idle_sandboxes": 3})
    async with open_engine(settings) as one, open_engine(three) as more:
        await one.pool.prewarm(default_spec(language, settings))
        await asyncio.sleep(0.5)
        before = _children_pss_mb()
        await more.pool.prewarm(default_spec(language, settings))
        await asyncio.sleep(0.5)
        return (_children_pss_mb() - before) / 3


async def many_rows_growth_mb(service: Service, rows: int = 100_000) -> float:
    """Return by how many MB the host's resident memory grows while it scores 100,000 rows."""
    before, peak = resident_mb(os.getpid()), 0.0
    evaluator = Evaluator(EXACT_MATCH)
    source = (Row(inputs={"correct_answer": "Paris", "n": n}, outputs="Paris") for n in range(rows))
    count = 0
    async for _ in service.evaluate_rows(evaluator, source, isolation=Isolation.BATCH):
        count += 1
        if count % 5000 == 0:
            peak = max(peak, resident_mb(os.getpid()))
    assert count == rows
    return peak - before


def p50(values: list[float]) -> float:
    return statistics.median(values)


def pss_mb(pid: int) -> float:
    """Return the memory (proportional set size, in MB) of a process and all its descendants."""
    return sum(map(_pss_mb, process_tree(pid)))


def _children_pss_mb() -> float:
    return pss_mb(os.getpid()) - _pss_mb(os.getpid())


def _pss_mb(pid: int) -> float:
    try:
        return psutil.Process(pid).memory_full_info().pss / (1 << 20)
    except psutil.Error:  # the process has just ended
        return 0.0
