"""The host and other workspaces go on, no matter what a function in a limited process does with a caller's data."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from operator import mul
from pathlib import Path

import pytest

from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.system.limited_process import WAITING_CALLS, CallLimits, LimitedProcesses
from evaluator_host.types.errors import (
    Busy,
    InvalidRequest,
    LimitExceeded,
    MachineExhausted,
    OutOfMemory,
    OutOfProcessorTime,
    TooLarge,
)
from evaluator_host.types.evaluator import Language
from tests.processes import is_running

ONE_SECOND = CallLimits(cpu_s=1)
SESSION = Path("/proc/self/autogroup")


def parquet_format() -> str:
    from pyarrow import parquet  # noqa: PLC0415 - imported in the same way as by the readers of rows

    return str(parquet.ParquetFile.__name__)


@pytest.fixture(scope="module")
async def processes() -> AsyncIterator[LimitedProcesses]:
    opened = LimitedProcesses(most=2)
    yield opened
    await opened.close()


@pytest.mark.parametrize("value", [{"a": [1, None, 2.5]}, "é", 10**30, b"\0\xff"])
async def test_a_value_or_bytes_come_back(processes: LimitedProcesses, value: object) -> None:
    assert await processes.call("a", max, [value]) == value


async def test_a_child_serves_many_calls(processes: LimitedProcesses) -> None:
    assert await processes.call("a", os.getpid) == await processes.call("b", os.getpid) != os.getpid()


async def test_a_child_gives_way_to_the_host_also_where_the_kernel_weighs_sessions(processes: LimitedProcesses) -> None:
    assert await processes.call("a", os.nice, 0) >= 5
    if os.access(SESSION, os.R_OK):
        assert (await processes.call("a", Path.read_text, SESSION)).endswith(" nice 5\n")


@pytest.mark.long
@pytest.mark.slow
async def test_one_long_computation_in_c_ends_at_its_processor_time(processes: LimitedProcesses) -> None:
    before = time.process_time()
    with pytest.raises(OutOfProcessorTime, match="more than 1 s of processor time"):
        await processes.call("a", round, 5, -1_000_000_000, limits=ONE_SECOND)
    assert time.process_time() - before < 0.5
    assert await processes.call("a", max, [1, 2]) == 2


@pytest.mark.slow
async def test_processor_time_is_counted_for_each_call(processes: LimitedProcesses) -> None:
    for _ in range(4):
        await processes.call("a", sum, range(10_000_000), limits=ONE_SECOND)


@pytest.mark.slow
async def test_memory_is_limited_and_the_next_call_has_its_own(processes: LimitedProcesses) -> None:
    with pytest.raises(OutOfMemory, match="more than 64 MB"):
        await processes.call("a", mul, "x", 1 << 30, limits=CallLimits(memory_mb=64))
    assert len(await processes.call("a", mul, b"x", 32 << 20, limits=CallLimits(memory_mb=128))) == 32 << 20


@pytest.mark.long
async def test_the_memory_of_named_modules_does_not_count(processes: LimitedProcesses) -> None:
    small = CallLimits(memory_mb=16)
    named = replace(small, modules=("pyarrow.parquet", "no_such_module"))
    with pytest.raises((OutOfMemory, LimitExceeded, RuntimeError)):
        await processes.call("a", parquet_format, limits=small)
    assert await processes.call("a", parquet_format, limits=named) == "ParquetFile"
    pid = await processes.call("a", os.getpid)
    assert await processes.call("a", parquet_format, limits=named) == "ParquetFile"
    assert await processes.call("a", os.getpid) == pid, (
        "memory of named modules must not make the host replace the child"
    )


@pytest.mark.parametrize("value", ["x", b"x"])
async def test_results_and_arguments_are_limited_in_bytes(processes: LimitedProcesses, value: object) -> None:
    with pytest.raises(LimitExceeded, match="more than 1 MB"):
        await processes.call("a", mul, value, 2 << 20, limits=CallLimits(result_bytes=1 << 20))
    with pytest.raises(TooLarge):
        await processes.call("a", len, b"x" * (2 << 20), limits=CallLimits(argument_bytes=1 << 20))


async def test_a_refusal_arrives_with_its_problems(processes: LimitedProcesses) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await processes.call("a", parse, ("numpy",), Language.PYTHON)
    assert refused.value.problems


async def test_any_other_exception_is_a_fault_of_the_host(processes: LimitedProcesses) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        await processes.call("a", divmod, 1, 0)


async def test_a_crash_of_a_native_parser_is_the_datas_fault(processes: LimitedProcesses) -> None:
    with pytest.raises(LimitExceeded, match="crash"):
        await processes.call("a", os.abort)


async def test_a_child_that_is_lost_is_replaced_once(processes: LimitedProcesses, tmp_path: Path) -> None:
    with pytest.raises(MachineExhausted, match="lost twice"):
        await processes.call("a", os._exit, 3)
    lost = await processes.call("a", os.getpid)
    os.kill(lost, signal.SIGKILL)
    assert await processes.call("a", os.getpid) != lost


async def test_a_child_has_no_secret_and_no_descriptor_of_the_host(
    processes: LimitedProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALUATOR_HOST_KEY", "secret")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    fresh = LimitedProcesses()
    try:
        assert b"secret" not in await fresh.call("a", Path.read_bytes, Path("/proc/self/environ"))
        assert len(await fresh.call("a", os.listdir, "/proc/self/fd")) <= 6
    finally:
        await fresh.close()
        os.close(read)
        os.close(write)


async def test_a_cancelled_call_ends_its_child(processes: LimitedProcesses) -> None:
    child = await processes.call("a", os.getpid)
    call = asyncio.create_task(processes.call("a", time.sleep, 60))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


async def test_workspaces_alternate_and_a_flood_is_refused(processes: LimitedProcesses) -> None:
    order: list[str] = []

    async def call(workspace: str) -> None:
        await processes.call(workspace, time.sleep, 0.01)
        order.append(workspace)

    # when these calls return, both children have started
    await asyncio.gather(call("b"), call("c"))
    order.clear()
    flood = [asyncio.create_task(call("a")) for _ in range(WAITING_CALLS + 1)]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await call("a")
    others = [asyncio.create_task(call(name)) for name in ("b", "c")]
    await asyncio.gather(*flood, *others)
    assert {"b", "c"} <= set(order[:8])


async def test_a_short_call_does_not_wait_for_long_ones_of_other_workspaces() -> None:
    opened = LimitedProcesses(most=2, short=1)
    long = [asyncio.create_task(opened.call(name, time.sleep, 600)) for name in ("a", "b")]
    waiting = asyncio.create_task(opened.call("c", os.getpid))
    assert isinstance(await opened.call("c", os.getpid, short=True), int)
    assert not any(one.done() for one in (*long, waiting))
    for one in (*long, waiting):
        one.cancel()
    await asyncio.gather(*long, waiting, return_exceptions=True)
    await opened.close()


async def test_a_waiting_call_may_be_cancelled(processes: LimitedProcesses) -> None:
    calls = [asyncio.create_task(processes.call("a", time.sleep, 0.05)) for _ in range(4)]
    await asyncio.sleep(0.01)
    calls[1].cancel()
    calls[2].cancel()
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(one, asyncio.CancelledError) for one in done] == [False, True, True, False]


async def test_a_killed_host_leaves_no_child() -> None:
    program = (
        "import asyncio, os, time\n"
        "from evaluator_host.engine.system.limited_process import LimitedProcesses\n"
        "async def main():\n"
        "    processes = LimitedProcesses()\n"
        "    pids = [await processes.call('a', os.getpid)]\n"
        "    busy = asyncio.create_task(processes.call('a', round, 5, -10**9))\n"
        "    await asyncio.sleep(0.2)\n"
        "    pids.append(await processes.call('b', os.getpid))\n"
        "    print(*pids, flush=True)\n"
        "    await busy\n"
        "asyncio.run(main())\n"
    )
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    children = [int(pid) for pid in host.stdout.readline().split()]
    host.kill()
    host.communicate()
    assert len(children) == 2
    for pid in children:
        for _ in range(200):
            if not is_running(pid):
                break
            await asyncio.sleep(0.05)
        assert not is_running(pid)
