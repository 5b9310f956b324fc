"""Python sandboxes that are forked from a template behave like freshly started sandboxes, for root and an ordinary
user.
"""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_host.engine.backends import make_backend
from evaluator_host.engine.config.settings import SandboxChoice, SandboxStart, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.sandbox.bubblewrap import template
from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from evaluator_host.engine.sandbox.session import Sandbox
from evaluator_host.engine.service.caller import Caller
from evaluator_host.types.evaluator import Environment, Evaluator, Language, Limits, Row, SandboxSpec
from tests.ordinary_user import pass_as_ordinary_user
from tests.processes import is_running

ROOT = os.geteuid() == 0
OK = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
OF_THE_HOST = {kind.name: str(kind.readlink()) for kind in Path("/proc/self/ns").iterdir()}
ONLY_FORKED = {"/etc", "/proc/sys", "/proc/irq", "/proc/bus", "/proc/sysrq-trigger"}
VIEW = """
import json, os, resource
def of_mount(line):
    words = line.split()
    return words[4], [words[5].split(",")[0], words[words.index("-") + 1]]
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
rights = ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Groups", "Threads")
kinds = ("ipc", "mnt", "net", "pid", "uts", "cgroup", "user")
masked = ("/proc/cmdline", "/proc/keys", "/proc/swaps", "/proc/sys/kernel/core_pattern")
def content(path):
    try:
        return open(path, "rb").read().decode("latin-1")
    except PermissionError:
        return "refused"
def evaluate(inputs, outputs, trace):
    print(json.dumps({
        "rights": {name: status.get(name, "").strip() for name in rights}, "bounding": status["CapBnd"],
        "mounts": dict(of_mount(line) for line in open("/proc/self/mountinfo")),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
        "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in kinds},
        "folders": {folder: sorted(os.listdir(folder)) for folder in ("/", "/dev", "/etc", "/tmp")},
        "files": [content(path) for path in masked],
        "own": [os.getuid() == os.geteuid(), os.getuid() != 0, os.getcwd(), os.uname().nodename, os.getsid(0) == os.getpid()],
        "environment": dict(os.environ), "tmp": os.statvfs("/tmp").f_blocks, "descriptors": sorted(os.listdir("/proc/self/fd")),
        "net": sorted(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line),
    }))
    return 1.0
"""

ORDERS = """
import re
FOUND = re.compile(b'"disk_by' + b'tes": (\\\\d+)')
def evaluate(inputs, outputs, trace):
    found = set()
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            words = line.split()
            first, last = (int(end, 16) for end in words[0].split("-"))
            if words[1].startswith("r") and "vvar" not in line and "vsyscall" not in line:
                memory.seek(first)
                try:
                    found.update(FOUND.findall(memory.read(last - first)))
                except OSError:
                    pass
    return {"score": 1.0, "label": b" ".join(sorted(found)).decode()}
"""


@pytest.fixture
def started(monkeypatch):
    """A list of the templates that the test starts."""
    made = []
    start = template.Template.__init__
    monkeypatch.setattr(
        template.Template, "__init__", lambda own, *of, **more: made.append(own) or start(own, *of, **more)
    )
    return made


def changed(data_dir: Path, start: SandboxStart = SandboxStart.TEMPLATE) -> Settings:
    return Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=data_dir, idle_sandboxes=0, sandbox_start=start)


def is_template(pid: int) -> bool:
    """Return whether a process is a template, or was forked by a template; both kinds have the same command line."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return (
        words[0].endswith(b"python" + f"{sys.version_info.major}.{sys.version_info.minor}".encode())
        and b"--template" in words
    )


async def view(data_dir: Path, start: SandboxStart) -> dict[str, object]:
    async with open_engine(changed(data_dir, start)) as service:
        result = await service.evaluate(Evaluator(VIEW), Row())
        assert result.score == 1.0, result.error
        return json.loads(result.logs.stdout)


async def test_a_forked_sandbox_sees_and_may_do_the_same_as_a_fresh_one(tmp_path, caplog):
    fresh, forked = await view(tmp_path, SandboxStart.FRESH), await view(tmp_path, SandboxStart.TEMPLATE)
    assert "template" not in caplog.text
    assert int(forked.pop("bounding"), 16) == 0
    assert int(forked["rights"].pop("CapInh"), 16) == 0
    del fresh["bounding"], fresh["rights"]["CapInh"]
    for kind, own in forked.pop("namespaces").items():
        assert own != OF_THE_HOST[kind] or (kind == "user" and ROOT)
    del fresh["namespaces"]
    more = forked["mounts"].keys() - fresh["mounts"].keys()
    assert more <= ONLY_FORKED
    assert {forked["mounts"].pop(mount)[0] for mount in more} == {"ro"}
    assert forked == fresh


async def test_two_of_them_share_no_namespace_and_no_files(tmp_path):
    wrote = "open('/tmp/left', 'w').write('x')\n" + VIEW
    async with open_engine(changed(tmp_path)) as service:
        both = [await service.evaluate(Evaluator(code), Row()) for code in (wrote, VIEW)]
    first, second = (json.loads(result.logs.stdout) for result in both)
    assert second["folders"]["/tmp"] == []
    for kind, own in first["namespaces"].items():
        assert own != second["namespaces"][kind] or (kind == "user" and ROOT)


async def test_has_no_order_of_a_neighbour_in_its_memory(tmp_path, caplog):
    limits = [Limits(disk_mb=disk_mb) for disk_mb in range(40, 48)]
    async with open_engine(changed(tmp_path)) as service:
        for number, one in enumerate(limits):
            assert (
                await service.evaluate(Evaluator(f"{OK}# {number}", limits=one), Row(), caller=Caller("beta"))
            ).score == 1
        seen = await service.evaluate(Evaluator(ORDERS, limits=Limits(timeout_s=60)), Row(), caller=Caller("alpha"))
    assert seen.score == 1.0, seen.error
    own = str(Limits().disk_mb * 1024 * 1024)
    assert set((seen.label or "").split()) <= {own}
    assert "template" not in caplog.text


@pytest.mark.long
async def test_has_no_descriptor_of_its_template(tmp_path, monkeypatch):
    # use a descriptor with a high number, as if there were thousands of sandboxes
    child, high = template.Child, fcntl.fcntl(0, fcntl.F_DUPFD, 3000)
    monkeypatch.setattr(template, "Child", lambda *of, pass_fds, **more: child(*of, pass_fds=(*pass_fds, high), **more))
    fresh = await view(tmp_path, SandboxStart.FRESH)
    assert (await view(tmp_path, SandboxStart.TEMPLATE))["descriptors"] == fresh["descriptors"]
    os.close(high)


@pytest.mark.long
async def test_answers_questions_of_editors(tmp_path, caplog):
    question = {"what": "completions", "line": 2, "column": 8, "given": {}}
    async with open_engine(changed(tmp_path)) as service:
        answer = await service.answer_question(Evaluator("import json\njson.du"), question)
    assert [one.name for one in answer.completions] == ["dump", "dumps"], answer.error
    assert "template" not in caplog.text


async def test_has_the_package_set_of_its_evaluator(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "pinned.py").write_text("here = 1\n")
    backend = await make_backend(SandboxChoice.BUBBLEWRAP, changed(tmp_path))
    environment = Environment("", Language.PYTHON, "", path=tmp_path / "set")
    for path, ready in ((environment, True), (Environment("", Language.PYTHON, ""), False)):
        spec = SandboxSpec(Language.PYTHON, path)
        sandbox = Sandbox(await backend.start(spec), backend="bubblewrap", spec=spec, grace_s=1.0)
        await sandbox.greet()
        assert (await sandbox.prepare(["pinned"], timeout_s=10) is None) is ready
        await sandbox.destroy()
    await backend.close()


@pytest.mark.long
async def test_a_template_that_dies_is_replaced_and_its_sandboxes_are_lost_not_failed(tmp_path, started):
    async with open_engine(changed(tmp_path)) as service:
        assert (await service.evaluate(Evaluator(OK), Row())).score == 1.0
        os.kill(started[0]._process.pid, signal.SIGKILL)
        for number in range(4):
            assert (await service.evaluate(Evaluator(f"{OK}# {number}\n"), Row())).score == 1.0
    assert len(started) == 2
    assert all(one.lost for one in started)


@pytest.mark.long
async def test_a_stopped_template_delays_one_start_and_serves_again_when_it_goes_on(
    tmp_path, started, monkeypatch, caplog
):
    monkeypatch.setattr(template, "_START_S", 1.0)
    async with open_engine(changed(tmp_path)) as service:
        assert (await service.evaluate(Evaluator(OK), Row())).score == 1.0
        pid = next(one for one in process_tree(started[0]._process.pid) if is_template(one))
        os.kill(pid, signal.SIGSTOP)
        for number in range(3):
            assert (await service.evaluate(Evaluator(f"{OK}# {number}\n"), Row())).score == 1.0
        assert (caplog.text.count("no answer"), caplog.text.count("still does not answer")) == (1, 2)
        os.kill(pid, signal.SIGCONT)
        async with asyncio.timeout(20):
            # wait until the sandbox that nobody took is gone
            while started[0].silent or len(started[0]._children) > 1:
                await asyncio.sleep(0.02)
        assert (await service.evaluate(Evaluator(f"{OK}# 3\n"), Row())).score == 1.0
    assert caplog.text.count("starts without the template") == 3
    assert len(started) == 1


@pytest.mark.long
async def test_sandboxes_start_fresh_where_a_template_may_not_make_them(tmp_path, monkeypatch, caplog):
    allowed = template.template_args
    monkeypatch.setattr(
        template, "template_args", lambda *of: [w if w != "CAP_SYS_ADMIN" else "CAP_CHOWN" for w in allowed(*of)]
    )
    async with open_engine(changed(tmp_path)) as service:
        for number in range(5):
            assert (await service.evaluate(Evaluator(f"{OK}# {number}\n"), Row())).score == 1.0
    assert caplog.text.count("starts without the template") == 3


HOST = """
import asyncio, os, signal, sys
from pathlib import Path
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.engine.opening import open_engine
from tests.contract.test_template import OK, changed
async def main():
    async with open_engine(changed(Path(sys.argv[1]))) as service:
        await service.evaluate(Evaluator(OK), Row())
        sandbox = next(iter(service.pool.backend._templates.values()))
        print(*(child.pid for child, _ in sandbox._children.values()), sandbox._process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.long
async def test_a_killed_host_leaves_no_process(tmp_path):
    host = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", HOST, tmp_path], capture_output=True, text=True, timeout=60
    )
    assert host.returncode == -signal.SIGKILL, host.stderr
    pids = host.stdout.split()
    assert len(pids) == 2
    async with asyncio.timeout(10):
        while any(is_running(int(pid)) for pid in pids):
            await asyncio.sleep(0.02)


@pytest.mark.long
def test_the_same_as_an_ordinary_user():
    pass_as_ordinary_user(Path(__file__))
