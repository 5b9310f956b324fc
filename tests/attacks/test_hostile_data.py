"""One caller attacks others on a real host with templates and files that could stop a host. The host is also killed
during an attack.
"""

import io
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.databases import Databases
from tests.keyed import bearer, eventually, make_key
from tests.processes import is_running, peak_mb, resident_mb, restart_peak
from tests.server import Server

CODE = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"
LONG_DIVISION = "{{ item.a | int(base=16) is divisibleby(item.b | int(base=16)) }}"
LONG_NUMBERS = [{"a": "f" * 4_000_000, "b": "e" * 2_000_000}]


@dataclass(frozen=True, slots=True)
class Host:
    """A host, with keys for an attacker and a neighbour."""

    server: Server
    alpha: str
    beta: str

    def ask(self, key: str, method: str, path: str, **arguments: Any) -> httpx.Response:
        headers = {**bearer(key), **arguments.pop("headers", {})}
        return httpx.request(method, self.server.url + path, headers=headers, timeout=60, **arguments)

    def start(self, template: str, rows: list[dict[str, Any]]) -> httpx.Response:
        body = {"evaluators": [{"code": CODE}], "dataset": {"rows": rows}, "mapping": {"outputs": template}}
        return self.ask(self.alpha, "POST", "/v1/jobs", json=body)

    def job(self, job_id: str) -> Any:
        return self.ask(self.alpha, "GET", f"/v1/jobs/{job_id}").json()

    @contextmanager
    def neighbour(self) -> Iterator[Counter[object]]:
        """Let the neighbour make calls during the block; check that all are answered and that the host's memory stays
        small.
        """
        before_mb, answers, stop = resident_mb(self.server.process.pid), Counter[object](), threading.Event()
        restart_peak(self.server.process.pid)

        def call() -> None:
            body = {"evaluator": {"code": CODE}}
            while not stop.wait(0.05):
                answers[self.ask(self.beta, "GET", "/healthz").status_code] += 1
                answers[self.ask(self.beta, "POST", "/v1/evaluate", json=body).json().get("score")] += 1

        caller = threading.Thread(target=call)
        caller.start()
        try:
            yield answers
        finally:
            stop.set()
            caller.join()
        assert set(answers) == {200, 1.0}, answers
        assert peak_mb(self.server.process.pid) - before_mb < 200


@pytest.fixture(scope="module")
def host(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    url = databases.make("sqlite")
    keys = [make_key("ci", workspace, url=url) for workspace in ("alpha", "beta")]
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(log=log, environment={"EVALUATOR_HOST_DATABASE_URL": url}) as server:
        made = Host(server, *keys)
        made.ask(made.beta, "POST", "/v1/evaluate", json={"evaluator": {"code": CODE}})
        yield made


@pytest.mark.long("test_hostile_uploads.py has neighbours of a hostile upload")
def test_a_neighbour_is_served_while_hostile_data_is_read_and_a_killed_host_leaves_no_reader(host: Host) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 8, pa.int32()), pa.array(["x" * (30 << 20)]))
    file = io.BytesIO()
    parquet.write_table(pa.table({"a": texts}), file, compression="zstd", store_schema=False)
    with host.neighbour() as answers:
        # tests/jobs/test_hostile_templates.py tests how the job ends
        job = host.start(LONG_DIVISION, LONG_NUMBERS).json()
        host.start("{{ item.n|round(item.p) }}", [{"n": 5, "p": -1_000_000_000}])
        refused = host.ask(
            host.alpha,
            "POST",
            "/v1/datasets?name=bomb&replace=true",
            content=file.getvalue(),
            headers={"content-type": "application/vnd.apache.parquet"},
        )
        eventually(lambda: sum(answers.values()) > 16)
        assert host.job(job["id"])["status"] in {"running", "failed"}
    assert refused.status_code in {201, 413, 422}, refused.text
    host.start(LONG_DIVISION, LONG_NUMBERS)
    eventually(lambda: bool(readers(host)))
    found = readers(host)
    host.server.kill()
    eventually(lambda: not any(map(is_running, found)))


def readers(host: Host) -> list[int]:
    """Return the host's limited processes, in which it reads callers' data."""
    return [
        int(one.parent.name)
        for one in Path("/proc").glob("[0-9]*/cmdline")
        if f"limited_child\0{host.server.process.pid}\0" in one.read_text(errors="replace")
    ]
