"""If the host has no more descriptors, processes or disk space, or reaches its cgroup's limits, it reports this, loses
nothing, and recovers.
"""

import contextlib
import itertools
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.environments.build.command import BuildSandbox
from evaluator_host.types.errors import MachineExhausted
from tests.faults.scene import FAST, HONEST, Scene, scene
from tests.package_index import serving
from tests.tools import copy_tools

Note = Callable[[float], None]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("means"), environment={"EVALUATOR_HOST_IDLE_TTL_S": "0.5"}) as running:
        yield running


def codes(host: Scene, count: int) -> list[int]:
    """Call `count` new evaluators at the same time, and return the statuses of the answers."""
    calls = [host.threads.submit(host.evaluate, f"{FAST}# {next(NUMBERS)}\n") for _ in range(count)]
    answers = [call.result() for call in calls]
    assert all(answer.json()["score"] == 1.0 for answer in answers if answer.status_code == 200)
    return [answer.status_code for answer in answers]


@pytest.mark.long
def test_a_host_without_descriptors_recovers(host: Scene, recovery: Note) -> None:
    assert set(codes(host, 8)) == {200}
    host.until(lambda: host.gauge("sandboxes") == 0)
    before = host.descriptors()
    _, hard = resource.prlimit(host.pid, resource.RLIMIT_NOFILE)
    # with each number of free descriptors, the start of a sandbox fails at a different step
    for more in range(2, 34, 2):
        resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (before + more, hard))
        assert set(codes(host, 1)) <= {200, *HONEST}
    resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (hard, hard))
    recovery(host.recovered())
    assert set(codes(host, 8)) == {200}
    host.until(lambda: host.gauge("sandboxes") == 0)
    assert host.descriptors() <= before + 2


STARTS = """
import os, resource, uvloop
from pathlib import Path
from evaluator_host.engine.system.processes import Command, run

def count():
    return len(os.listdir("/proc/self/fd"))

async def main():
    command, (soft, hard) = Command(("/bin/true",), Path("/"), {}), resource.getrlimit(resource.RLIMIT_NOFILE)
    await run(command, 60)
    before = count()
    for more in range(16):
        resource.setrlimit(resource.RLIMIT_NOFILE, (before + more, hard))
        try:
            came_to = str((await run(command, 60)).code)
        except OSError as error:
            came_to = error.strerror
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        print(came_to, count() - before, sep=";")

uvloop.run(main())
"""


def test_a_process_that_has_no_descriptors_is_refused_as_such_and_loses_none() -> None:
    done = subprocess.run([sys.executable, "-c", STARTS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split("\n")) == {"Too many open files;0", "0;0", ""}


async def test_packages_are_not_installed_without_a_sandbox_because_bubblewrap_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "bwrap"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    (tmp_path / "build").mkdir()
    builder = Builder(tmp_path / "build", file_mb=100)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        with pytest.raises(MachineExhausted, match="try again"):
            await builder._find()
    assert isinstance(await builder._find(), BuildSandbox)


@pytest.mark.long
def test_a_host_without_processes_recovers(host: Scene, recovery: Note) -> None:
    with process_limit(host) as limit:
        assert set(codes(host, 4)) == {200}
        limit(0)
        answers = codes(host, 4)
        assert set(answers) <= {200, *HONEST}
        assert set(answers) & HONEST, "a call for which there is no process must be refused"
        limit(None)
        recovery(host.recovered())
        assert set(codes(host, 4)) == {200}


@contextmanager
def process_limit(host: Scene) -> Iterator[Callable[[int | None], None]]:
    """Put the host into a cgroup, and yield a function that limits how many more processes the cgroup may have."""
    mount = next(path for path in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")) if path.is_dir())
    group = mount / f"faults-{host.pid}"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(host.pid))

    def limit(more: int | None) -> None:
        current = int((group / "pids.current").read_text())
        (group / "pids.max").write_text("max" if more is None else str(current + more))

    try:
        yield limit
    finally:
        limit(None)
        (mount / "cgroup.procs").write_text(str(host.pid))
        # wait until no sandboxes are left, because their processes are in the group too
        host.until(lambda: host.gauge("sandboxes") == 0)
        host.until(lambda: removed(group))


def removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def test_the_hosts_own_cgroup_is_removed_beneath_it(host: Scene, recovery: Note) -> None:
    host.until(lambda: host.gauge("sandboxes") == 0)
    walked = os.walk("/sys/fs/cgroup")
    homes = [Path(at, name) for at, names, _ in walked for name in names if f"-{host.pid}-" in name]
    assert homes, "the machine must let the host make cgroups"
    for home in homes:
        home.rmdir()
    recovery(host.recovered())
    assert set(codes(host, 4)) == {200}


@contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> Path:
    stuffing = folder / "stuffing"
    with stuffing.open("wb", buffering=0) as file:
        for piece in (1 << 20, 4096):
            with contextlib.suppress(OSError):
                while file.write(bytes(piece)):
                    pass
    return stuffing


def test_a_full_data_directory(tmp_path: Path, recovery: Note) -> None:
    with small_disk(tmp_path / "disk", megabytes=640) as disk, serving() as index:
        data = disk / "data"
        copy_tools(data)
        pin = index.add("plenty", "value = 1.0\n", size=4 << 20)
        code = "import plenty\ndef evaluate(inputs, outputs, trace):\n    return plenty.value\n"
        body = {"evaluator": {"code": code, "packages": [pin]}}
        environment = {"EVALUATOR_HOST_PIP_INDEX_URL": index.simple, "EVALUATOR_HOST_PROXY": ""}
        with scene(tmp_path, data_dir=data, environment=environment) as host:
            stuffing = fill(disk)
            assert host.evaluate().json()["score"] == 1.0, "a call that needs no disk must succeed"
            refused = host.server.client.post("/v1/evaluate", json=body)
            assert refused.status_code in {422, 503}, refused.text
            assert "space" in refused.json()["detail"] or "disk" in refused.json()["detail"], refused.text
            stuffing.unlink()
            started = time.monotonic()
            answer = host.server.client.post("/v1/evaluate", json=body)
            assert answer.json().get("score") == 1.0, answer.text
            recovery(time.monotonic() - started)


@pytest.mark.long
def test_a_full_directory_for_temporary_files(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        fill(disk)
        with scene(tmp_path, environment={"TMPDIR": str(disk)}) as host:
            assert set(codes(host, 4)) == {200}
