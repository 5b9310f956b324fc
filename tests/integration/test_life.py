"""A host is stopped, killed and started again, or started on a machine without a backend.

The host leaves nothing behind.
"""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from tests import forked
from tests.conftest import BACKENDS, DATA_DIR
from tests.engines import engine_address
from tests.keyed import eventually
from tests.left_behind import left_behind, until_nothing_is_left
from tests.server import COMMAND, PREWARMED, Server

SLOW = "import time\ndef evaluate(inputs, outputs, trace):\n    open('/tmp/{mark}', 'w').close()\n    time.sleep(600)\n"
FAST = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"


def environment(backend: str) -> dict[str, str]:
    engine = {"EVALUATOR_HOST_DOCKER_HOST": engine_address()} if backend == "docker" else {}
    # a short grace period, because the host waits that long for the endless rows of these tests
    return {**PREWARMED, "EVALUATOR_HOST_STOP_GRACE_S": "1", **engine}


@contextlib.contextmanager
def slow_row(server: Server) -> Iterator[None]:
    """Start a row that runs longer than the test, over a separate connection."""
    mark = f"begun-{secrets.token_hex(6)}"
    body = json.dumps({"evaluator": {"code": SLOW.format(mark=mark), "limits": {"timeout_s": 100}}})
    caller = subprocess.Popen(
        [
            "curl",
            "-s",
            "-o",
            "/dev/null",
            "-d",
            body,
            "-H",
            "content-type: application/json",
            f"{server.url}/v1/evaluate",
        ]
    )
    eventually(lambda: has_begun(mark), within_s=60)
    yield
    caller.wait(30)


def has_begun(mark: str) -> bool:
    """Whether a row in any sandbox on this machine has created a file with this name in /tmp."""
    roots = Path("/proc").glob("[0-9]*/root")
    return any(os.path.exists(root / "tmp" / mark) for root in roots)  # noqa: PTH110 - `Path.exists` raises an error for a process that ends


@pytest.mark.long
def test_the_next_start_removes_the_temporary_folder_of_a_killed_host_of_several_processes(tmp_path: Path) -> None:
    temporary = Path(tempfile.mkdtemp(prefix="eh-"))  # a short path, because it becomes part of a socket's address
    variables = {"TMPDIR": str(temporary), "EVALUATOR_HOST_WORKERS": "2"}
    try:
        with Server(command=COMMAND, log=tmp_path / "log", environment=variables) as server:
            processes = [Path(f"/proc/{pid}") for pid in process_tree(server.process.pid)]
            server.kill()
        eventually(lambda: not any(process.exists() for process in processes))
        left = {*temporary.iterdir()}
        assert left
        with Server(command=COMMAND, log=tmp_path / "next", environment={"TMPDIR": str(temporary)}):
            assert not left & {*temporary.iterdir()}, (
                "the next host must have removed the folders that the killed host left"
            )
    finally:
        shutil.rmtree(temporary)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_clean_stop_leaves_nothing(backend: str, tmp_path: Path) -> None:
    command = COMMAND if backend == "bubblewrap" else None  # with bubblewrap, the host is not forked from the tests
    with Server(backend, command=command, log=tmp_path / "log", environment=environment(backend)) as server:
        assert server.client.post("/v1/evaluate", json={"evaluator": {"code": FAST}}).json()["score"] == 1.0
        with slow_row(server):
            assert left_behind(server.process.pid), "the check for leftovers must find sandboxes while they run"
            assert server.stop() == 0
    assert not left_behind(server.process.pid)


@pytest.mark.parametrize("backend", BACKENDS)
def test_kill_9_leaves_no_process_and_the_next_start_removes_the_rest(backend: str, tmp_path: Path) -> None:
    first = Server(backend, log=tmp_path / "first", environment=environment(backend)).wait_until_ready()
    assert first.client.post("/v1/evaluate", json={"evaluator": {"code": FAST}}).json()["score"] == 1.0
    with slow_row(first):
        first.kill()
    with Server(backend, log=tmp_path / "second", environment=environment(backend)) as second:
        assert second.client.post("/v1/evaluate", json={"evaluator": {"code": FAST}}).json()["score"] == 1.0
    until_nothing_is_left(first.process.pid)


def test_a_machine_without_a_backend_refuses_to_run_code_and_says_what_to_install(tmp_path: Path) -> None:
    bare = {
        "PATH": str(tmp_path),  # a PATH without bwrap
        "DOCKER_HOST": f"unix://{tmp_path}/no-engine.sock",
        "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR),
        "EVALUATOR_HOST_DATABASE_URL": os.environ["EVALUATOR_HOST_DATABASE_URL"],
        "HOME": os.environ["HOME"],
    }
    served = forked.run(["serve", "--port", "0"], env=bare)
    assert served.returncode == 3
    assert "apt-get install bubblewrap" in served.stderr
    assert "doctor" in served.stderr
    assert "Traceback" not in served.stderr
    doctor = forked.run(["doctor"], env=bare)
    assert doctor.returncode == 3
    assert "bubblewrap" in doctor.stdout
    assert "apt-get install bubblewrap" in doctor.stdout.replace("\n", " ")


def test_auto_takes_bubblewrap_when_it_works() -> None:
    assert Settings().sandbox is SandboxChoice.AUTO
