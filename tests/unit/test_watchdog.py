"""The watchdog reads files in /proc in its own thread, because with many sandboxes callers would have to wait for the
reading.
"""

import asyncio
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from evaluator_host.engine.sandbox.linux import watchdog as module
from evaluator_host.engine.sandbox.linux.watchdog import Over, Watch, Watchdog

# no limit, because for a process in the machine's own network, the sockets of the whole machine count
NO_LIMIT = 1 << 50


@pytest.fixture
def process() -> "Iterator[subprocess.Popen[bytes]]":
    """A shell process with a child process."""
    with subprocess.Popen(["sh", "-c", "sleep 600; true"]) as made:
        while not (children := module.child_pids(made.pid)):
            pass
        yield made
        made.kill()
        for pid in children:
            os.kill(pid, signal.SIGKILL)


async def test_sandboxes_are_measured_beside_the_event_loop(
    process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, loop, read = Counter[bool](), threading.get_ident(), module.read_text

    def noted(path: str) -> str:
        reads[threading.get_ident() == loop] += path.startswith(f"/proc/{process.pid}/")
        return read(path)

    watches = [Watch(process.pid, NO_LIMIT, 100, process.kill) for _ in range(20)]
    for watch in watches:
        watch.name = "bubblewrap"  # the process of the shell has another name, so the sandbox counts as set up
    monkeypatch.setattr(module, "read_text", noted)
    watchdog = Watchdog()
    for watch in watches:
        watchdog.start_watching(watch)
    async with asyncio.timeout(60):
        while reads[False] < 500:
            await asyncio.sleep(0.01)
    used = [watch.used_bytes() for watch in watches]
    for watch in watches:
        watchdog.stop_watching(watch)
    assert reads[True] == 0
    assert all(used)


async def test_a_sandbox_over_a_limit_is_killed_on_the_event_loop(process: "subprocess.Popen[bytes]") -> None:
    killed, loop = asyncio.Event(), threading.get_ident()
    by: list[int] = []

    def kill() -> None:
        by.append(threading.get_ident())
        process.kill()
        killed.set()

    watch, watchdog = Watch(process.pid, NO_LIMIT, 1, kill), Watchdog()
    watchdog.start_watching(watch)
    async with asyncio.timeout(60):
        await killed.wait()
    await asyncio.sleep(0.2)  # enough time for four more measurements
    watchdog.stop_watching(watch)
    assert (watch.over, by) == (Over.PROCESSES, [loop])
