"""`doctor` beside running hosts reports what listens on the port, why a host is not ready, rows on other hosts, and the
sandboxes' share of the processor.
"""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import forked
from tests.answering import saying
from tests.conftest import DATA_DIR
from tests.databases import Databases
from tests.faults.scene import scene
from tests.faults.test_doctor import NO_DOCKER
from tests.keyed import make_key
from tests.left_behind import cgroup_folders
from tests.server import Server, free_port, new_home

HERE = {"EVALUATOR_HOST_DATA_DIR": str(DATA_DIR)}
PATIENCE_S = """
import sys
from evaluator_host.cli import doctor
doctor._ANSWERS_S = 1.0
sys.argv[1:] = ["doctor", "--json"]
from evaluator_host.__main__ import main
main()
"""


def doctor(port: int, *arguments: str, **environment: str) -> dict[str, dict[str, Any]]:
    """Return `doctor`'s findings about this port, by name; check that `doctor` says that a host can start."""
    done = forked.run(
        arguments or ["doctor", "--json"],
        env={**os.environ, **NO_DOCKER, **HERE, "EVALUATOR_HOST_PORT": str(port), **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return {one["name"]: one for part in json.loads(done.stdout)["findings"].values() for one in part}


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """Listen on a port, and yield it. Every request gets the same answer; with None, no request gets an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server, saying(answer, server):
        yield server.getsockname()[1]


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.long("test_doctor.py has a case of what the command says")
@pytest.mark.parametrize(
    "answer",
    [None, b"", b"SSH-2.0-OpenSSH\r\n", http("404 Not Found", "<h1>none</h1>"), http("200 OK", "<h1>a page</h1>")],
    ids=["silent", "closes", "ssh", "not-found", "page"],
)
def test_a_port_that_another_program_has(answer: bytes | None) -> None:
    with listening(answer) as port:
        told = doctor(port, "-c", PATIENCE_S)[f"port {port}"]
    assert not told["ok"]
    assert f"port {port} of 127.0.0.1 is in use" in told["detail"]
    assert "no Evaluator Host answers there" in told["detail"]
    assert "choose another port (EVALUATOR_HOST_PORT), or stop the program that listens there" in told["fix"]


@pytest.mark.long
def test_a_host_that_wants_a_key_at_an_address_of_version_6(tmp_path: Path, databases: Databases) -> None:
    url = databases.make("sqlite")
    make_key("first", "default", url=url)
    environment = {"EVALUATOR_HOST_DATABASE_URL": url}
    server = Server(log=tmp_path / "log", environment=environment, host="::1")
    server.client = httpx.Client(base_url=f"http://[::1]:{server.port}", timeout=60)
    with server:
        told = doctor(server.port, EVALUATOR_HOST_HOST="::1", **environment)[f"port {server.port}"]
    assert (told["ok"], told["detail"]) == (True, "an Evaluator Host runs there (it needs a key)")


@pytest.mark.long
def test_a_host_that_is_stopping(tmp_path: Path) -> None:
    with scene(tmp_path) as host:
        running = host.evaluating(seconds=8.0)
        host.server.process.send_signal(signal.SIGTERM)
        host.until(lambda: host.evaluate().status_code == 503)
        told = doctor(host.server.port)[f"port {host.server.port}"]
        assert not told["ok"]
        assert "the Evaluator Host there is not ready: this host is shutting down" in told["detail"]
        assert running.result().json()["score"] == 1.0


@pytest.mark.long
@pytest.mark.parametrize("engine", ["postgresql"])
def test_a_data_directory_without_the_rows_of_another_host(engine: str, databases: Databases, tmp_path: Path) -> None:
    environment = {"EVALUATOR_HOST_DATABASE_URL": databases.make(engine)}
    with Server(log=tmp_path / "log", environment=environment) as host:
        rows = {"Content-Type": "application/x-ndjson"}
        host.client.post("/v1/datasets?name=elsewhere", content=b'{"n": 1}\n', headers=rows).raise_for_status()
        own = doctor(host.port, **environment)["rows and files"]
        other = doctor(free_port(), **environment, EVALUATOR_HOST_DATA_DIR=str(new_home(tmp_path)))["rows and files"]
    assert not other["ok"]
    assert (
        f"are not in {tmp_path / 'data'}: jobs that use these data sets wait for the host that has the rows"
        in other["detail"]
    )
    assert "let all hosts of the database share their data directory or EVALUATOR_HOST_STORAGE_URL" in other["fix"]
    assert "are not in" not in own["detail"]


@pytest.mark.long
def test_doctor_says_what_the_sandboxes_of_a_host_weigh(tmp_path: Path) -> None:
    with Server(log=tmp_path / "log") as host:
        told = doctor(host.port)["limits"]["detail"]
        homes = cgroup_folders(f"*-{host.process.pid}-")
        shares = [int((home / "cpu.shares").read_text()) / 1024 for home in homes if (home / "cpu.shares").exists()]
        weights = [int((home / "cpu.weight").read_text()) / 100 for home in homes if (home / "cpu.weight").exists()]
    (weight,) = shares or weights
    said = re.search(r"gives all sandboxes together ([\d.]+) times the share of an ordinary process", told)
    assert said is not None, told
    assert float(said[1]) == pytest.approx(weight, rel=0.02)
