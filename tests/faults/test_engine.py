"""The Docker engine is killed while a host runs: calls get correct answers, and the host recovers by itself."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.pool.prewarmed import PROBE_HOLDS_S
from evaluator_host.engine.sandbox.docker.cleanup import LABEL_INSTANCE
from evaluator_host.engine.sandbox.linux.watchdog import process_tree
from tests import engines
from tests.crash_engine import CrashEngine, crash_engine
from tests.faults.scene import HONEST, SLOW, Scene, has_begun, scene

SOON_S = 20


@pytest.fixture(scope="module")
def engine() -> Iterator[CrashEngine]:
    with crash_engine(Settings().docker_image, source=engines.engine_address()) as running:
        yield running


def containers(host: Scene, address: str) -> list[str]:
    client = docker.APIClient(base_url=address)
    found = client.containers(all=True, filters={"label": [LABEL_INSTANCE]})
    client.close()
    return [one["Id"] for one in found if f"-{host.pid}-" in one["Labels"][LABEL_INSTANCE]]


def processes(host: Scene, address: str) -> Iterator[int]:
    """Yield the processes in the host's containers."""
    client = docker.APIClient(base_url=address)
    for one in containers(host, address):
        yield from process_tree(client.inspect_container(one)["State"]["Pid"])
    client.close()


@pytest.mark.long("test_kills.py kills processes in bubblewrap")
def test_the_engine_is_killed_and_started_again(
    engine: CrashEngine, tmp_path: Path, recovery: Callable[[float], None]
) -> None:
    environment = {"EVALUATOR_HOST_DOCKER_HOST": engine.address, "EVALUATOR_HOST_IDLE_SANDBOXES": "1"}
    command = ["docker", "--host", engine.address]
    with scene(tmp_path, backend="docker", environment=environment, docker=command) as host:
        assert host.evaluate().json()["score"] == 1.0
        running = host.threads.submit(host.evaluate, SLOW, seconds=30.0, timeout_s=60.0)
        host.until(lambda: len(containers(host, engine.address)) >= 2)
        dead = containers(host, engine.address)
        engine.kill()
        answer = running.result(60)
        assert answer.status_code in {200, *HONEST}, answer.text
        if answer.status_code == 200:
            assert answer.json()["error"]["code"] == "sandbox_lost"
        refused = host.evaluate()
        assert refused.status_code == 503
        assert "no Docker engine answers" in refused.json()["detail"]
        host.until(lambda: host.server.client.get("/readyz").status_code == 503)
        engine.start()
        recovery(host.recovered())
        host.until(lambda: not set(dead) & set(containers(host, engine.address)), seconds=60)


@pytest.mark.long
@pytest.mark.parametrize("ready", ["0", "1"])
def test_callers_and_probes_soon_learn_that_an_engine_hangs(engine: CrashEngine, tmp_path: Path, ready: str) -> None:
    environment = {"EVALUATOR_HOST_DOCKER_HOST": engine.address, "EVALUATOR_HOST_IDLE_SANDBOXES": ready}
    command = ["docker", "--host", engine.address]
    with scene(tmp_path, backend="docker", environment=environment, docker=command) as host:
        assert host.evaluate().json()["score"] == 1.0
        time.sleep(PROBE_HOLDS_S)
        with engine.frozen():
            refused = host.threads.submit(host.evaluate, "def evaluate(inputs, outputs, trace):\n    return 0.5\n")
            host.until(lambda: host.server.client.get("/readyz").status_code == 503, seconds=SOON_S)
            # a call that has a sandbox waits longer, because the engine may recover
            assert refused.result(SOON_S if ready == "0" else 60).status_code == 503
        host.recovered()


@pytest.mark.long
def test_a_row_is_not_blamed_for_an_engine_that_hangs(engine: CrashEngine, tmp_path: Path) -> None:
    environment = {"EVALUATOR_HOST_DOCKER_HOST": engine.address}
    command = ["docker", "--host", engine.address]
    with scene(tmp_path, backend="docker", environment=environment, docker=command) as host:
        assert host.evaluate(SLOW, timeout_s=4.0).json()["score"] == 1.0
        running = host.threads.submit(host.evaluate, SLOW, seconds=2.0, timeout_s=4.0)
        host.until(lambda: has_begun(processes(host, engine.address)))
        with engine.frozen():
            # longer than the row's time limit, and longer than the host waits for an engine before it gives up
            time.sleep(15)
            refused = host.evaluate("def evaluate(inputs, outputs, trace):\n    return 0.5\n")
            assert host.server.client.get("/healthz").status_code == 200
        assert refused.status_code == 503
        assert "hangs: it accepts requests, but does not answer" in refused.json()["detail"]
        assert running.result(60).json()["score"] == 1.0
        host.recovered()


@pytest.mark.long
def test_the_processes_of_a_container_are_killed_from_outside(
    tmp_path: Path, recovery: Callable[[float], None]
) -> None:
    address = engines.engine_address()
    environment = {"EVALUATOR_HOST_DOCKER_HOST": address}
    command = ["docker", "--host", address]
    with scene(tmp_path, backend="docker", environment=environment, docker=command) as host:
        running = host.threads.submit(host.evaluate, SLOW, seconds=12.0, timeout_s=60.0)
        host.until(lambda: bool(containers(host, address)))
        host.until(lambda: host.gauge("queue") == 0)
        client = docker.APIClient(base_url=address)
        pid = client.inspect_container(containers(host, address)[0])["State"]["Pid"]
        client.close()
        os.kill(pid, signal.SIGKILL)
        answer = running.result(60).json()
        assert answer["error"] is None, (
            "the row must run again in another container, because it did not cause the fault"
        )
        recovery(host.recovered())
