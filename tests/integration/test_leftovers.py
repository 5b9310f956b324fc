"""A test run that is killed leaves processes, an engine and folders behind; the next run removes them when it starts."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import engines
from tests.leftovers import RUN, engine_processes, make_folder, mounts_below, remove_leftovers
from tests.processes import is_running

pytestmark = pytest.mark.engine

KILLED = """
import subprocess, sys, time
from pathlib import Path
from tests.crash_engine import CrashEngine
from tests.databases import PostgreSQL
from tests.forked import Forked
from tests.leftovers import begin_run

begin_run()
server, engine = PostgreSQL(), CrashEngine(Path(sys.argv[1]))
engine.start()
host = Forked(["serve", "--port", "0", "--data-dir", sys.argv[2]])
sleeps = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(server._folder, server._process.pid, host.pid, sleeps.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.long("this starts a separate engine and database; each test run begins with the same cleaning")
def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder("eh-engine")  # the path is short, because it becomes part of a socket's address
    (folder / "users.lock").touch()
    without = {name: value for name, value in os.environ.items() if name != RUN}
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), str(tmp_path / "data")],
        env=without, cwd=engines.PROBE_RUNTIMES.parents[2], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert killed.stdout is not None
    databases, *pids = killed.stdout.readline().split()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert all(Path(f"/proc/{pid}").exists() for pid in (pids[0], pids[-1]))
    assert engine_processes(folder)
    ours, lives = make_folder("eh-pg"), subprocess.Popen(["sleep", "600"])

    monkeypatch.setattr(engines, "CRASH_DIR", folder)
    remove_leftovers()
    engines.remove_unused_engines()

    until = time.monotonic() + 20
    while any(is_running(int(pid)) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert [pid for pid in pids if is_running(int(pid))] == []
    assert (Path(databases).exists(), engine_processes(folder), mounts_below(folder)) == (False, [], [])
    assert (ours.exists(), lives.poll()) == (True, None), (
        "the files and processes of a run that has not ended must stay"
    )
    ours.rmdir()
    lives.kill()
    lives.wait()
    shutil.rmtree(folder)
