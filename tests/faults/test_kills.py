"""A part of a running host is killed. Every call gets one answer, and the next call works as before."""

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.scene import SLOW, Scene, scene

Note = Callable[[float], None]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("kills"), environment={"EVALUATOR_HOST_IDLE_TTL_S": "0.5"}) as host:
        yield host


@pytest.fixture
def host(running: Scene) -> Scene:
    """The running host; the fixture first waits until it has no sandboxes."""
    running.until(lambda: running.gauge("sandboxes") == 0)
    running.forget_rows()
    return running


def end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_the_runner_is_killed_under_a_row_which_is_run_again(host: Scene, recovery: Note) -> None:
    answer = host.evaluating(seconds=1.0)
    for pid in set(host.processes("runner.py")) - set(host.processes("bwrap")):
        end(pid)
    recovery(host.recovered())
    assert answer.result().json()["score"] == 1.0, answer.result().text
    assert host.rows() == 2, "the row that was begun twice must be counted once"


@pytest.mark.long
def test_the_process_of_a_row_is_killed_which_is_run_again(host: Scene, recovery: Note) -> None:
    answer = host.evaluating(seconds=1.0)
    end(max(host.processes("runner.py")))  # the youngest process
    recovery(host.recovered())
    assert answer.result().json()["score"] == 1.0, answer.result().text
    assert host.rows() == 2, "the row that was begun twice must be counted once"


@pytest.mark.long
def test_bubblewrap_is_killed_under_a_row_which_is_run_again(host: Scene, recovery: Note) -> None:
    answer = host.evaluating(seconds=1.0)
    host.until(lambda: bool(host.processes("bwrap")))
    end(min(host.processes("bwrap")))  # this kills the outer process, which code in a sandbox cannot reach
    recovery(host.recovered())
    assert answer.result().json()["score"] == 1.0, answer.result().text
    assert host.rows() == 2, "the row that was begun twice must be counted once"


@pytest.mark.long
def test_every_sandbox_is_killed_again_and_again_under_a_batch(host: Scene) -> None:
    with ThreadPoolExecutor() as threads:
        rows = [{"inputs": {"seconds": 0.05, "number": number}} for number in range(100)]
        code = SLOW.replace("return 1.0", "return {'score': 1.0, 'number': inputs['number']}")
        body = {"evaluator": {"code": code}, "rows": rows}
        batch = threads.submit(host.server.client.post, "/v1/evaluate/batch", json=body)
        for _ in range(4):
            host.until(lambda: _rows_run(host) or batch.done())
            for pid in host.processes("bwrap"):
                end(pid)
        assert batch.result().status_code == 200, batch.result().text
        results = batch.result().json()["results"]
        assert len(results) == 100
        scored = [(at, found["value"]) for at, found in enumerate(results) if found["status"] == "scored"]
        assert all(value["number"] == at for at, value in scored), "each row must get its own answer"
        others = {found["error"]["code"] for found in results if found["status"] == "failed"}
        assert others <= {"sandbox_lost"}, (
            "a row that was hit twice must end with the error that allows sending it again"
        )
        assert len(scored) >= 92
        assert host.rows() == 100


def _rows_run(host: Scene) -> bool:
    return len(set(host.processes("runner.py")) - set(host.processes("bwrap"))) > len(host.processes("bwrap"))


def test_a_stopped_host_that_goes_on_takes_the_answer_that_came_in_time(host: Scene) -> None:
    answer = host.evaluating(seconds=0.8, timeout_s=1.5)
    os.kill(host.pid, signal.SIGSTOP)
    time.sleep(4)
    os.kill(host.pid, signal.SIGCONT)
    assert answer.result().json()["score"] == 1.0, answer.result().text
    assert host.recovered() < 60


@pytest.mark.long
def test_a_full_log_pipe_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(write, b"x" * 4096):
            pass
    os.set_blocking(write, True)
    try:
        with scene(tmp_path, stderr=write) as host:
            _, hard = resource.prlimit(host.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (host.descriptors() + 2, hard))
            assert {host.evaluate().status_code for _ in range(5)} == {503}, (
                "the host must refuse these calls, and log a warning for each"
            )
            resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (hard, hard))
            assert host.recovered() < 60
    finally:
        os.close(read)
        os.close(write)
