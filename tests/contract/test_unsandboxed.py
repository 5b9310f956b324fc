"""`sandbox = none`: the runner is an ordinary process, which leaves nothing behind when it ends. Nothing is isolated,
and the host says so.
"""

import asyncio
import signal
import tempfile
from pathlib import Path

import pytest

from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.unsandboxed import UnsandboxedBackend
from evaluator_host.types.evaluator import Language
from tests.probe import TOOLS, Probe, spec
from tests.processes import command_of


@pytest.fixture(name="backend")
def backend_fixture():
    return UnsandboxedBackend(TOOLS)


def scratch_folders() -> set[str]:
    return {str(path) for path in Path(tempfile.gettempdir()).glob("evaluator-host-*")}


@pytest.mark.parametrize(
    ("language", "code"),
    [
        (Language.PYTHON, "import os; print(os.environ['TMPDIR'])"),
        (Language.JAVASCRIPT, "return process.env.TMPDIR"),
    ],
)
async def test_has_a_scratch_folder_while_it_lives(backend, language, code):
    async with await Probe.start(backend, spec(language)) as probe:
        assert "--private-tmp" not in probe.hello["hello"]
        scratch = (await probe.run(code)).strip()
        assert scratch in scratch_folders()
    assert scratch not in scratch_folders()


async def test_the_hosts_environment_does_not_reach_it(backend, monkeypatch):
    monkeypatch.setenv("EVALUATOR_HOST_SECRET", "s3cret")
    async with await Probe.start(backend) as probe:
        assert "s3cret" not in await probe.run("import os; print(os.environ)")


async def test_a_crash_is_the_guests(backend):
    async with await Probe.start(backend) as probe:
        probe.send("import os; os.kill(os.getpid(), 11)")
        assert await probe.link.read() == b""
        exit_status = await probe.link.destroy()
    assert (exit_status.signal, exit_status.exit_code, exit_status.lost) == (signal.SIGSEGV, None, False)


async def test_the_end_of_the_runner_is_seen_though_a_child_holds_its_pipes(backend):
    async with await Probe.start(backend) as probe:
        pid = int(await probe.run("import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"))
        probe.send("import os; os._exit(3)")
        async with asyncio.timeout(10):
            assert await probe.link.read() == b""
        assert (await probe.link.destroy()).exit_code == 3
    async with asyncio.timeout(30):
        while command_of(pid) == b"sleep\x00600\x00":
            await asyncio.sleep(0.01)


async def test_sweeps_what_a_dead_host_left_and_not_its_own(backend):
    dead = this_instance().rpartition("-")[0] + "-1"
    left = tempfile.mkdtemp(prefix=f"evaluator-host-{dead}_")
    async with await Probe.start(backend) as probe:
        own = (await probe.run("import os; print(os.environ['TMPDIR'])")).strip()
        assert await backend.sweep() == 1
        assert left not in scratch_folders()
        assert own in scratch_folders()


async def test_findings_warn(backend):
    (finding,) = await backend.findings()
    assert not finding.ok
    assert "this user's files" in finding.detail
