"""However a bubblewrap sandbox ends, it leaves nothing behind, on real hosts that root and an ordinary user run."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import uvloop

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.sandbox.bubblewrap.descriptors import MEMORY_FILE
from evaluator_host.engine.sandbox.exit_status import classify_exit
from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from evaluator_host.types.errors import SandboxUnavailable
from evaluator_host.types.outcome import ErrorCode
from tests.descriptors import descriptors
from tests.left_behind import cgroup_folders, sandbox_cgroups
from tests.ordinary_user import pass_as_ordinary_user
from tests.probe import Probe, new_backend, spec


@pytest.fixture(name="backend")
async def backend_fixture():
    backend = new_backend()
    yield backend
    await backend.close()


def living(mark: str) -> list[int]:
    """Return the ids of all processes on this machine that have the mark as their name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "comm").read_text().strip() == mark:
                    found.append(int(entry.name))
    return found


def new_mark() -> str:
    return "eh-" + uuid.uuid4().hex[:10]


SURVIVOR = """
import ctypes, os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"{mark}")
        time.sleep(600)
    os._exit(0)
time.sleep(0.2)
print("started")
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os; os._exit(7)", (7, None)),
        ("import os; os._exit(0)", (0, None)),
        # this is a real segmentation fault, because process 1 ignores `kill`
        ("import ctypes; ctypes.string_at(0)", (None, signal.SIGSEGV)),
        ("import os; os.kill(-1, 9)", (None, signal.SIGKILL)),
    ],
)
async def test_says_how_the_runner_ended(backend, code, expected):
    async with await Probe.start(backend) as probe:
        probe.send(f"import os; os.write(2, b'last words'); {code}" if code != expected else code)
        await probe.link.read()
        exit_status = await probe.link.destroy()
        if "kill(-1" not in code:  # `kill(-1)` kills every process except its caller
            assert (exit_status.exit_code, exit_status.signal) == expected
        assert exit_status.stderr_tail.endswith("last words")
        assert not exit_status.lost
        assert await probe.link.destroy() == exit_status
        assert probe.link.ended
        assert await probe.link.read() == b""
        probe.link.write(b"nobody reads this")
        await probe.link.drain()


async def test_destroy_leaves_nothing(backend):
    mark = new_mark()
    # these are child processes that other tests in the same run have started, such as an engine
    others = set(child_pids(os.getpid()))
    before = descriptors()
    groups = sandbox_cgroups(backend.instance)
    probe = await Probe.start(backend)
    assert await probe.run(SURVIVOR.replace("{mark}", mark)) == "started\n"
    assert len(living(mark)) == 1
    children = set(child_pids(os.getpid())) - others
    assert children
    await probe.link.destroy()
    assert living(mark) == []
    assert sandbox_cgroups(backend.instance) == groups
    assert descriptors() <= before
    assert not children & set(child_pids(os.getpid()))


async def test_a_stopped_runner_and_its_children_are_destroyed(backend):
    mark = new_mark()
    probe = await Probe.start(backend)
    await probe.run(SURVIVOR.replace("{mark}", mark))
    probe.send("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    await asyncio.sleep(0.1)
    assert not probe.link.ended
    await probe.link.destroy()
    assert living(mark) == []


async def test_a_sandbox_that_something_else_killed_is_lost(backend):
    probe = await Probe.start(backend)
    os.kill(probe.link._child.pid, signal.SIGKILL)
    assert await probe.link.read() == b""
    exit_status = await probe.link.destroy()
    assert exit_status.lost
    assert classify_exit(exit_status, memory_mb=256)[0] is ErrorCode.SANDBOX_LOST
    assert sandbox_cgroups(backend.instance) == set()


async def test_a_start_that_fails_says_why_and_leaves_nothing(backend, tmp_path):
    await (await backend.start(spec())).destroy()
    before = descriptors()
    try:
        link = await backend.start(spec(path=tmp_path / "evicted"))
    except SandboxUnavailable as error:
        words = error.detail
    else:  # bubblewrap failed after the host had let it continue
        assert await link.read() == b""
        exit_status = await link.destroy()
        assert exit_status.lost
        words = exit_status.stderr_tail
    assert "evicted" in words
    assert sandbox_cgroups(backend.instance) == set()
    assert descriptors() <= before


async def test_a_missing_tool_is_named(tmp_path):
    backend = new_backend(restricted=tmp_path / "gone")
    with pytest.raises(SandboxUnavailable, match=r"gone does not exist"):
        await backend.start(spec())


async def test_without_bubblewrap_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    backend = new_backend()
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        await backend.start(spec())
    findings = await backend.findings()
    assert [finding.ok for finding in findings] == [False]
    assert f"{findings[0].detail} {findings[0].fix}".count("apt-get install bubblewrap") == 1


async def test_a_caller_that_gives_up_while_it_starts_leaves_nothing(backend):
    await (await backend.start(spec())).destroy()
    before = descriptors()
    for delay in (0.0, 0.001, 0.003, 0.006):
        task = asyncio.create_task(backend.start(spec()))
        await asyncio.sleep(delay)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await task).destroy()
    assert sandbox_cgroups(backend.instance) == set()
    assert descriptors() <= before


KILLED_HOST = """
import asyncio, sys
from tests.contract.test_bubblewrap_life import SURVIVOR
from tests.probe import new_backend
from tests.probe import Probe

async def main():
    probe = await Probe.start(new_backend())
    await probe.run(SURVIVOR.replace("{mark}", sys.argv[1]))
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_host_that_is_killed_leaves_nothing_after_the_next_start(backend):
    mark = new_mark()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    host = subprocess.Popen([sys.executable, "-c", KILLED_HOST, mark], stdout=subprocess.PIPE, env=environment)
    assert host.stdout is not None
    assert host.stdout.readline() == b"started\n"
    assert len(living(mark)) == 1
    host.kill()
    host.wait()
    host.stdout.close()
    until = time.monotonic() + 10
    while living(mark) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    assert living(mark) == []
    dead = f"host-*-{host.pid}-"
    assert await backend.sweep() >= len(sandbox_cgroups(dead))
    assert cgroup_folders(dead) == []


async def test_leftovers_of_a_bubblewrap_killed_between_two_steps_are_found(backend):
    """The host finds what bubblewrap leaves behind when it is killed between two steps. While a sandbox starts, its
    first process waits for a byte from bubblewrap, and does not end with bubblewrap. The option `--userns-block-fd`
    delays this byte, so that the test can kill bubblewrap before the byte is sent.
    """
    (told, tells), (kept_back, go), memory = os.pipe(), os.pipe(), os.memfd_create(MEMORY_FILE)
    arguments = ["--unshare-user", "--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/"]
    descriptors = ["--info-fd", str(tells), "--userns-block-fd", str(kept_back)]
    command = ["bwrap", *arguments, *descriptors, "sleep", "600"]
    wrapper = subprocess.Popen(command, pass_fds=[tells, kept_back, memory])
    said = b""
    while not said.endswith(b"}\n"):
        said += await asyncio.to_thread(os.read, told, 4096)
    left = json.loads(said)["child-pid"]
    async with await Probe.start(backend) as probe:
        wrapper.kill()
        wrapper.wait()
        assert left in living("bwrap")
        await backend.sweep()
        until = time.monotonic() + 10
        while left in living("bwrap"):
            assert time.monotonic() < until, "this sweep, or that of another host, must end the process"
            await asyncio.sleep(0.01)
        assert await probe.run("print('still there')") == "still there\n"
    for end in (told, tells, kept_back, go, memory):
        os.close(end)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_large_messages_both_ways_on_either_loop(runner):
    async def scenario() -> None:
        backend = new_backend()
        async with await Probe.start(backend) as probe:
            text = "x" * (4 << 20)
            probe.send(f"print(len({text!r}))")
            await probe.link.drain()
            assert await probe._answer() == f"{len(text)}\n"
            assert await probe.run("print('y' * (8 << 20), end='')") == "y" * (8 << 20)
        await backend.close()

    runner(scenario())


async def test_findings_say_what_is_in_force():
    """The host's findings say which protections are in force. The Python runner is real; the JavaScript runner is the
    probe, which sends no first message.
    """
    backend = new_backend(runtimes=RUNTIMES_DIR)
    findings = {finding.name: finding for finding in await backend.findings()}
    tried = {"python sandbox", "javascript sandbox"}
    assert set(findings) == {"bubblewrap", *tried, "user", "seccomp", "boundary", "limits"}
    assert [name for name, finding in findings.items() if not finding.ok] == ["javascript sandbox"], findings
    link = await backend.start(spec())
    assert ("watchdog" in findings["limits"].detail) == (not sandbox_cgroups(backend.instance))
    await link.destroy()
    await backend.close()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_all_of_this_holds_for_an_ordinary_user():
    pass_as_ordinary_user(Path(__file__))
