"""A host with several processes behind one port (`serve --workers`): callers see one host, even when a process dies."""

import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from evaluator_host.cli.serve import listen
from tests import forked
from tests.databases import Databases
from tests.keyed import eventually, make_key
from tests.over_http import calling_processes, connection_to, owner_of
from tests.processes import is_running
from tests.server import Server, new_home

EVALUATORS, CALLERS, EACH = 4, 6, 12


def code(number: int) -> str:
    return f"import os\ndef evaluate(inputs, outputs, trace):\n    return float(outputs == inputs['a'])  # {number}\n"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("workers")
    temporary = folder / ("longer than the path of a socket may be" * 3)
    temporary.mkdir()
    environment = {
        "TMPDIR": str(temporary),
        "EVALUATOR_HOST_WORKERS": "2",
        "EVALUATOR_HOST_RATE_LIMIT_PER_S": "10000",
        "EVALUATOR_HOST_RATE_LIMIT_BURST": "10000",
    }
    with Server(data_dir=new_home(folder), log=folder / "log", environment=environment) as server:
        until = time.monotonic() + 60
        while len(calling_processes(server)) < 1 and time.monotonic() < until:
            time.sleep(0.05)
        yield server


@pytest.mark.long
def test_a_host_that_was_killed_starts_again_at_its_port_at_once(tmp_path: Path) -> None:
    environment = {"EVALUATOR_HOST_WORKERS": "2"}
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log", environment=environment) as server:
        eventually(lambda: len(calling_processes(server)) == 1, within_s=60)
        (pid,) = calling_processes(server)
        # the host closes this connection first, so the kernel keeps the connection's port for a minute
        with connection_to(server, pid) as asking:
            asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            while asking.recv(4096):
                pass
        first = psutil.Process(server.process.pid)
        family = [one.pid for one in (first, *first.children(recursive=True))]
        first.kill()
        eventually(lambda: not any(map(is_running, family)))
        listen("127.0.0.1", server.port).close()


def call(client: httpx.Client, number: int) -> dict[str, object]:
    body = {"evaluator": {"code": code(number)}, "inputs": {"a": 1}, "outputs": 1}
    answer = client.post("/v1/evaluate", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["score"] == 1.0
    found: dict[str, object] = answer.json()
    return found


def many(server: Server) -> list[dict[str, object]]:
    def caller(_: int) -> list[dict[str, object]]:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            return [call(client, number % EVALUATORS) for number in range(EACH)]

    with ThreadPoolExecutor(CALLERS) as callers:
        return [one for found in callers.map(caller, range(CALLERS)) for one in found]


def counted(server: Server) -> float:
    with httpx.Client(base_url=server.url) as client:  # a new connection each time, so that any process may answer
        lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("evaluator_host_rows_total{"))


@pytest.mark.long
def test_an_evaluator_is_warm_in_one_process_whichever_process_is_asked(host: Server) -> None:
    # during these calls, the processes learn of each other
    many(host)
    before = counted(host)
    found = many(host)
    cold = sum(not one["sandbox"]["warm"] for one in found)  # type: ignore[index]
    assert cold <= EVALUATORS, "each evaluator may be loaded only once, in one of the processes"
    assert [counted(host) - before for _ in range(6)] == [CALLERS * EACH] * 6, (
        "each process must count the calls of all processes"
    )


@pytest.mark.long
def test_requests_that_are_not_calls_reach_the_first_process(host: Server) -> None:
    for number in range(4):  # any process may answer each of these calls
        with httpx.Client(base_url=host.url, timeout=60) as client:
            assert client.get("/readyz").status_code == 200
            assert client.get("/v1/nothing?x=%2F").status_code == 404
            rows = b"a,o\n" + b"1,1\n" * 50_000
            url = f"/v1/datasets?name=rows-{number}"
            upload = client.post(url, content=iter([rows]), headers={"Content-Type": "text/csv"})
            assert upload.json()["rows"] == 50_000, upload.text
            assert client.post("/v1/evaluate", content=b"{").status_code == 422
    body = {
        "evaluators": [{"code": code(0)}],
        "dataset": "rows-0",
        "mapping": {"inputs.a": "a", "outputs": "o"},
        "config": {"isolation": "batch"},
    }
    with httpx.Client(base_url=host.url, timeout=60) as client:
        job = client.post("/v1/jobs", json=body).json()
        with client.stream("GET", f"/v1/jobs/{job['id']}/events") as events:
            assert any('"completed"' in line for line in events.iter_lines())
        assert client.get(f"/v1/jobs/{job['id']}").json()["progress"]["done"] == 50_000


@pytest.mark.long
def test_the_log_names_the_address_of_a_caller_whose_request_was_passed_on(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.make("sqlite")
    make_key("ci", "default", url=url)
    environment = {"EVALUATOR_HOST_WORKERS": "2", "EVALUATOR_HOST_DATABASE_URL": url}
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log", environment=environment) as server:
        eventually(lambda: len(calling_processes(server)) == 1, within_s=60)
        (pid,) = calling_processes(server)
        with connection_to(server, pid, source="127.0.0.2") as asking:
            asking.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n")
            assert b" 401 " in asking.recv(4096)
        eventually(lambda: "1 from 127.0.0.2" in server.log)


@pytest.mark.long
def test_connections_are_spread_over_the_processes(host: Server) -> None:
    """Connections are spread evenly over the processes, because each process has its own socket at the port. With one
    shared socket, the kernel would give most connections to one process.
    """
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_connection(("127.0.0.1", host.port), timeout=60)) for _ in range(40)]
        held = Counter(owner_of(host, one) for one in made)
    assert set(held) == {host.process.pid, *calling_processes(host)}
    assert min(held.values()) >= 5, "with two equal processes, a smaller number happens only once in a million runs"


@pytest.mark.long
def test_event_streams_of_a_key_are_counted_over_all_processes(host: Server) -> None:
    """The limit on event streams of a key holds over all processes together.

    The first process counts the streams of all processes, so the limit need not be divided between them.
    """
    slow = {
        "code": "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(60)\n",
        "limits": {"timeout_s": 90},
    }
    with httpx.Client(base_url=host.url, timeout=60) as client, ExitStack() as stack:
        job = client.post("/v1/jobs", json={"evaluators": [slow], "dataset": {"rows": [{"outputs": 1}]}}).json()["id"]
        made = [stack.enter_context(socket.create_connection(("127.0.0.1", host.port), timeout=60)) for _ in range(40)]
        held = set()
        for one in made:
            # find the owner before the request, because the host may close the connection after refusing the request
            held.add(owner_of(host, one))
            one.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert len(held) == 2
        assert Counter(one.recv(1000)[9:12] for one in made) == {b"200": 16, b"429": 24}
        client.post(f"/v1/jobs/{job}/cancel").raise_for_status()


def test_a_second_host_is_refused_the_port(host: Server, tmp_path: Path) -> None:
    ended = forked.run(["serve", "--port", str(host.port), "--data-dir", str(tmp_path)])
    assert ended.returncode == 2
    assert f"port {host.port} of 127.0.0.1 is in use" in ended.stderr


def test_a_killed_process_is_started_again_and_no_call_fails_on_new_connections(host: Server) -> None:
    (first,) = calling_processes(host)
    os.kill(first, signal.SIGKILL)
    # until the process has ended, connections that wait for it are not reset
    eventually(lambda: not psutil.pid_exists(first))
    many(host)
    until = time.monotonic() + 30
    while calling_processes(host) in ([], [first]) and time.monotonic() < until:
        time.sleep(0.05)
    assert calling_processes(host) not in ([], [first])
    many(host)
    assert "a process for calls was lost" in host.log


def test_all_processes_of_a_host_stop_together(host: Server) -> None:
    pids = calling_processes(host)
    assert host.stop() == 0
    # the processes have reported their end, but the kernel needs another moment
    eventually(lambda: not any(map(psutil.pid_exists, pids)), within_s=5)
    assert "Traceback" not in host.log


@pytest.mark.long
def test_calls_that_wait_are_limited_over_all_processes(tmp_path: Path) -> None:
    """Calls that wait are limited over all processes together. Two rows run and twenty wait, in both processes. Each
    process may accept one row fewer, because it keeps a slot for other workspaces. Without a common limit, twenty rows
    would wait in each process.
    """
    environment = {
        "EVALUATOR_HOST_WORKERS": "2",
        "EVALUATOR_HOST_MAX_SANDBOXES": "2",
        "EVALUATOR_HOST_QUEUE_LIMIT": "20",
    }
    waits = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(25)\n"
    refused: list[int] = []
    with Server(data_dir=new_home(tmp_path), log=tmp_path / "log", environment=environment) as server:
        eventually(lambda: len(calling_processes(server)) == 1, within_s=60)

        def ask(number: int) -> None:
            evaluator = {"code": f"{waits}# {number % 8}\n"}  # several evaluators, so that each process gets some
            with httpx.Client(base_url=server.url, timeout=60) as client, suppress(httpx.TransportError):
                refused.append(client.post("/v1/evaluate", json={"evaluator": evaluator}).status_code)

        with ThreadPoolExecutor(60) as callers:
            asked = [callers.submit(ask, number) for number in range(60)]
            try:
                eventually(lambda: len(refused) >= 60 - 22)
            finally:
                server.kill()
            assert [one.exception() for one in asked] == [None] * 60
    assert set(refused) == {429}
