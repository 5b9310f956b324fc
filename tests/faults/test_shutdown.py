"""A host is stopped: it finishes running work, refuses new calls, ends at once at a second signal, and leaves nothing
behind.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.faults.scene import FAST, scene
from tests.left_behind import until_nothing_is_left
from tests.server import COMMAND, Server, new_home


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_what_runs_finish_and_refuses_the_rest(number: signal.Signals, tmp_path: Path) -> None:
    # restore the default for SIGHUP, because processes under `nohup make test` ignore it
    heard = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)"
    with scene(tmp_path, program=heard) as host:
        running = host.evaluating(seconds=3.0)
        host.server.process.send_signal(number)
        host.until(lambda: host.evaluate().status_code == 503)
        refused = host.evaluate()
        assert refused.json()["code"] == "sandbox_unavailable"
        assert refused.headers["retry-after"] == "1"
        assert host.server.client.get("/readyz").status_code == 503
        assert host.server.client.get("/healthz").status_code == 200
        assert not running.done()
        assert running.result().json()["score"] == 1.0
        assert host.server.process.wait(20) == 0


@pytest.mark.long
def test_calls_that_outlast_the_grace_period_are_told_so(tmp_path: Path) -> None:
    with scene(tmp_path, environment={"EVALUATOR_HOST_STOP_GRACE_S": "0.5"}) as host:
        running = host.evaluating(seconds=60.0, timeout_s=100.0)
        host.server.process.send_signal(signal.SIGTERM)
        answer = running.result(20)
        assert answer.status_code == 503
        assert "shutting down" in answer.json()["detail"]
        assert host.server.process.wait(20) == 0


@pytest.mark.long
def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with scene(tmp_path, environment={"EVALUATOR_HOST_STOP_GRACE_S": "600"}) as host:
        running = host.evaluating(seconds=60.0, timeout_s=100.0)
        host.server.process.send_signal(signal.SIGTERM)
        host.until(lambda: host.evaluate().status_code == 503)
        host.server.process.send_signal(signal.SIGTERM)
        assert running.result(20).status_code == 503
        assert host.server.process.wait(20) == 0


@pytest.mark.long
def test_calls_that_wait_are_served_before_the_end(tmp_path: Path) -> None:
    with scene(tmp_path, environment={"EVALUATOR_HOST_MAX_SANDBOXES": "1"}) as host:
        first = host.evaluating(seconds=1.0)
        waiting = host.threads.submit(host.evaluate, FAST)
        host.until(lambda: "evaluator_host_queue 1.0" in host.server.client.get("/metrics").text)
        host.server.process.send_signal(signal.SIGTERM)
        assert [call.result().json()["score"] for call in (first, waiting)] == [1.0, 1.0]
        assert host.server.process.wait(20) == 0


def test_a_signal_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    server = Server(command=COMMAND, log=tmp_path / "log")
    time.sleep(0.7)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) in {0, 128 + signal.SIGTERM, -signal.SIGTERM}
    server.client.close()
    until_nothing_is_left(server.process.pid, docker=[])
    assert "Traceback" not in server.log


@pytest.mark.long
def test_a_thread_that_never_ends_does_not_keep_the_host(tmp_path: Path) -> None:
    """A thread that never ends does not prevent the end of the host. Here, a job reads its rows in a thread, from a
    pipe to which nobody writes.
    """
    home, log = new_home(tmp_path), tmp_path / "log"
    with Server(data_dir=home, log=log, environment={"EVALUATOR_HOST_STOP_GRACE_S": "1"}) as server:
        client = server.client
        assert client.post("/v1/datasets?name=x", content="a\n1\n", headers={"Content-Type": "text/csv"}).is_success
        for path in [path for path in (home / "datasets").rglob("*") if path.is_file()]:
            path.unlink()
            os.mkfifo(path)
        unchecked = {"evaluators": [{"code": FAST}], "dataset": "x", "mapping": {"outputs": "none"}}
        assert client.post("/v1/jobs", json=unchecked).status_code == 202
        while client.get("/v1/jobs").json()[0]["status"] != "running":
            time.sleep(0.02)
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(1 + 5 + 1) == 0, "the thread must end together with the process of jobs"
    until_nothing_is_left(server.process.pid, docker=[])


SLOW_TO_FREE = """
import sys, time
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(8)
sys.slow = Slow()
"""


@pytest.mark.long
def test_an_interpreter_that_is_slow_to_free_its_memory_is_not_ended_by_force(tmp_path: Path) -> None:
    """The host waits for an interpreter that is slow to free its memory. Everything is stored before the interpreter
    ends, but its end may take longer on a busy machine.
    """
    (tmp_path / "sitecustomize.py").write_text(SLOW_TO_FREE)
    environment = {"EVALUATOR_HOST_STOP_GRACE_S": "0.5", "PYTHONPATH": str(tmp_path)}
    with Server(command=COMMAND, log=tmp_path / "log", environment=environment) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0, server.log
    assert "Timeout (" not in server.log


def test_a_crash_of_native_code_says_in_the_log_where_it_was(tmp_path: Path) -> None:
    """If native code crashes, the log says where.

    A crash can happen, for example, if a SQLite file is mapped and its file system becomes read-only.
    """
    with Server(log=tmp_path / "log") as server:
        server.process.send_signal(signal.SIGBUS)
        assert server.process.wait(20) == -signal.SIGBUS
    assert "Fatal Python error: Bus error" in server.log
    assert "most recent call first" in server.log
