"""The Docker engine is killed under a running host: calls have an honest answer, and the host recovers by itself."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from evaluator_host.config import Settings
from evaluator_host.sandbox.docker_remains import LABEL_INSTANCE
from evaluator_host.sandbox.watchdog import children
from tests import engines
from tests.faults.scene import HONEST, SLOW, Scene, scene
from tests.integration.test_docker_engines import CRASH_DIR, copy_image, mounts_of, start_crash_engine

ADDRESS = f"unix://{CRASH_DIR}/docker.sock"


@pytest.fixture(scope="module")
def crash_engine() -> Iterator[str]:
    """A dockerd of our own that may be killed, with the runtime image in it; its images stay for the next run."""
    CRASH_DIR.mkdir(parents=True, exist_ok=True)
    start_crash_engine()
    copy_image(Settings().docker_image, source=engines.engine_address(), target=ADDRESS)
    yield ADDRESS
    engines.stop_dockerd(CRASH_DIR)
    for pid in shims():  # a killed engine leaves some of its own, without a container
        assert children(pid) == []
        os.kill(pid, signal.SIGKILL)
    for mount in mounts_of(CRASH_DIR):
        subprocess.run(["umount", mount], check=True)


def shims() -> list[int]:
    """The processes of the crash engine that are left."""
    found = subprocess.run(["pgrep", "-f", str(CRASH_DIR)], check=False, capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def containers(host: Scene) -> list[str]:
    client = docker.APIClient(base_url=ADDRESS)
    found = client.containers(all=True, filters={"label": [LABEL_INSTANCE]})
    client.close()
    return [one["Id"] for one in found if f"-{host.pid}-" in one["Labels"][LABEL_INSTANCE]]


def test_the_engine_is_killed_and_started_again(
    crash_engine: str, tmp_path: Path, recovery: Callable[[float], None]
) -> None:
    environment = {"EVALUATOR_HOST_DOCKER_HOST": crash_engine, "EVALUATOR_HOST_IDLE_SANDBOXES": "1"}
    command = ["docker", "--host", crash_engine]
    with scene(tmp_path, backend="docker", environment=environment, docker=command) as host:
        assert host.evaluate().json()["score"] == 1.0
        running = host.threads.submit(host.evaluate, SLOW, seconds=30.0, timeout_s=60.0)
        host.until(lambda: len(containers(host)) >= 2)
        dead = containers(host)
        engines.stop_dockerd(CRASH_DIR, how=signal.SIGKILL)
        answer = running.result(60)
        assert answer.status_code in {200, *HONEST}, answer.text
        if answer.status_code == 200:
            assert answer.json()["error"]["code"] == "sandbox_lost"
        refused = host.evaluate()
        assert refused.status_code == 503
        assert "no Docker engine answers" in refused.json()["detail"]
        host.until(lambda: host.server.client.get("/readyz").status_code == 503)
        start_crash_engine()
        recovery(host.recovered())
        host.until(lambda: not set(dead) & set(containers(host)), seconds=60)


def test_the_processes_of_a_container_are_killed_from_outside(
    crash_engine: str, tmp_path: Path, recovery: Callable[[float], None]
) -> None:
    environment = {"EVALUATOR_HOST_DOCKER_HOST": crash_engine}
    command = ["docker", "--host", crash_engine]
    with scene(tmp_path, backend="docker", environment=environment, docker=command) as host:
        running = host.threads.submit(host.evaluate, SLOW, seconds=30.0, timeout_s=60.0)
        host.until(lambda: bool(containers(host)))
        host.until(lambda: host.gauge("queue") == 0)
        client = docker.APIClient(base_url=ADDRESS)
        pid = client.inspect_container(containers(host)[0])["State"]["Pid"]
        client.close()
        os.kill(pid, signal.SIGKILL)
        answer = running.result(60).json()
        assert answer["error"]["code"] == "crashed", answer
        recovery(host.recovered())
