"""A bubblewrap sandbox cannot exceed its limits of disk, processes, memory and output, on real hosts that root and an
ordinary user run.
"""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from evaluator_host.engine.sandbox.exit_status import classify_exit
from evaluator_host.engine.sandbox.linux.rlimits import process_limit
from evaluator_host.types.evaluator import Language
from evaluator_host.types.outcome import ErrorCode
from tests.left_behind import sandbox_cgroups
from tests.ordinary_user import pass_as_ordinary_user
from tests.probe import Probe, new_backend, spec


@pytest.fixture(name="backend")
async def backend_fixture():
    backend = new_backend()
    yield backend
    await backend.close()


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
async def test_disk_limit(backend, folder):
    async with await Probe.start(backend, spec(disk_mb=4)) as probe:
        answer = await probe.run(
            f"import errno\nwritten = 0\nwith open('{folder}/big', 'wb', buffering=0) as f:\n"
            "    try:\n        while True: written += f.write(bytes(65536))\n"
            "    except OSError as e: print(errno.errorcode[e.errno], written)\n"
        )
        name, written = answer.split()
        assert name == "ENOSPC"
        assert int(written) == 4 * 1024 * 1024


async def test_process_limit(backend):
    wanted = spec(processes=8)
    async with await Probe.start(backend, wanted) as probe:
        answer = await probe.run(
            "import errno, os, signal, time\nchildren = []\ntry:\n"
            "    while len(children) < 500:\n"
            "        pid = os.fork()\n"
            "        if pid == 0: time.sleep(600)\n"
            "        children.append(pid)\n"
            "except OSError as e: print(errno.errorcode[e.errno], len(children))\n"
            "for pid in children: os.kill(pid, 9); os.waitpid(pid, 0)\n"
        )
        name, count = answer.split()
        assert name == "EAGAIN"
        assert 8 <= int(count) <= process_limit(Language.PYTHON, 8)
        assert await probe.run("print('still there')") == "still there\n"
        counted = bool(sandbox_cgroups(backend.instance))  # without a cgroup, nothing counts the processes
        assert (await probe.link.destroy()).pids_hit == counted


async def test_a_fork_that_was_refused_does_not_explain_a_kill(backend):
    async with await Probe.start(backend, spec(processes=8)) as probe:
        fork = "        children.append(os.fork() or time.sleep(600))\n"
        await probe.run(
            f"import os, time\nchildren = []\ntry:\n    while True:\n{fork}except OSError: pass\n"
            "for pid in children: os.kill(pid, 9); os.waitpid(pid, 0)\n"
        )
        assert probe.link.first_pid is not None
        # the test kills the runner from outside, since an ordinary user's runner is process 1, which cannot kill itself
        os.kill(probe.link.first_pid, signal.SIGKILL)
        assert await probe.link.read() == b""
        exit_status = await probe.link.destroy()
    assert (exit_status.signal, exit_status.pids_hit) == (signal.SIGKILL, False)


async def test_memory_limit(backend):
    async with await Probe.start(backend, spec(memory_mb=64)) as probe:
        assert probe.link.memory_events() == 0
        probe.send("hoard = []\nwhile True: hoard.append(bytearray(1 << 20))")
        assert await probe.link.read() == b""
        exit_status = await probe.link.destroy()
    assert exit_status.oom_killed
    assert not exit_status.lost
    assert classify_exit(exit_status, memory_mb=64)[0] is ErrorCode.MEMORY_LIMIT


async def test_memory_limit_of_shared_memory_in_a_child(backend):
    async with await Probe.start(backend, spec(memory_mb=64)) as probe:
        probe.send(
            "import mmap, os, time\nif os.fork() == 0:\n"
            "    m = mmap.mmap(-1, 1 << 30)\n    for at in range(0, 1 << 30, 4096): m[at] = 1\n    time.sleep(600)\n"
            "os.wait(); print('outlived it')"
        )
        data = await probe.link.read()
        # with a cgroup, the kernel kills only the child; without one, the watchdog ends the sandbox
        assert (b"outlived" in data) == (probe.link.memory_events() == 1 and data != b"")
        exit_status = await probe.link.destroy()
    assert data != b"" or exit_status.oom_killed


async def test_a_full_v8_heap_is_the_memory_limit(backend):
    async with await Probe.start(backend, spec(Language.JAVASCRIPT, memory_mb=128)) as probe:
        probe.send("const hoard = []; for (;;) hoard.push(new Array(1e5).fill(1.5))")
        assert await probe.link.read() == b""
        exit_status = await probe.link.destroy()
    assert classify_exit(exit_status, memory_mb=128)[0] is ErrorCode.MEMORY_LIMIT, exit_status


async def test_a_flood_waits_in_the_pipe_until_it_is_read(backend):
    async with await Probe.start(backend) as probe:
        probe.send("import os\nfor _ in range(64): os.write(1, bytes(1 << 20))")
        await asyncio.sleep(0.3)
        first = await probe.link.read()
        assert 0 < len(first) <= 256 * 1024
        total = len(first)
        while total < 64 << 20:
            total += len(await probe.link.read())
        assert total >= 64 << 20


@pytest.mark.long
@pytest.mark.timeout(300)
def test_all_of_this_holds_for_an_ordinary_user():
    pass_as_ordinary_user(Path(__file__))
