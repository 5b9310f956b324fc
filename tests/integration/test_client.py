"""Both clients call a real host: results have the client's types, and errors of the host become the client's
exceptions.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Self

import pytest

import evaluator_host
from evaluator_host import AsyncClient, Client, Evaluator, Language, Limits, Row
from evaluator_host.client import HostUnreachable
from evaluator_host.types.errors import Busy, HostError, InUse, InvalidRequest, NotFound, Refused
from evaluator_host.types.evaluator import Contract, Isolation
from evaluator_host.types.outcome import ErrorCode, EvaluationResult, Status
from tests.both_clients import FLAVOURS, open_client
from tests.keyed import eventually
from tests.server import Server, free_port

EXACT = Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs == inputs['correct_answer']\n")


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(server: Server, flavour: str) -> Iterator[Client]:
    with open_client(flavour, server.url) as opened:
        yield opened


def test_a_result_is_the_models_own(client: Client) -> None:
    result = client.evaluate(EXACT, inputs={"correct_answer": "Paris"}, outputs="Paris")
    assert isinstance(result, EvaluationResult)
    assert (result.status, result.score, result.passed) == (Status.SCORED, 1.0, True)
    assert result.evaluator.contract is Contract.EVALUATE
    assert result.evaluator.language is Language.PYTHON
    assert result.timing_ms.total > 0


def test_a_failed_row_is_a_result(client: Client) -> None:
    result = client.evaluate(EXACT)
    assert result.status is Status.FAILED
    assert result.error is not None
    assert (result.error.code, result.error.line) == (ErrorCode.USER_EXCEPTION, 2)


def test_every_argument_arrives(client: Client) -> None:
    code = "def evaluate(inputs, outputs, trace):\n    return {'score': 1, 'got': [inputs, outputs, trace]}\n"
    trace = {"spans": {"a": {"name": "root", "attributes": {}, "children": []}}}
    result = client.evaluate(Evaluator(code), inputs={"a": [1, None]}, outputs={"b": ""}, trace=trace)
    assert result.value["got"] == [{"a": [1, None]}, {"b": ""}, trace]
    main = Evaluator("function main(variables) { return {score: variables.n}; }", language=Language.JAVASCRIPT)
    assert client.evaluate(main, variables={"n": 0.25}).score == 0.25


def test_a_batch_keeps_its_order(client: Client) -> None:
    rows = [Row({"correct_answer": n % 3}, 0) for n in range(50)]
    for isolation in Isolation:
        batch = client.evaluate_batch(EXACT, rows, isolation=isolation)
        assert [result.score for result in batch.results] == [float(n % 3 == 0) for n in range(50)]
        assert (batch.summary.rows, batch.summary.scored, batch.summary.errors) == (50, 50, {})


@pytest.mark.sampled(2)
def test_check_info_and_ready(client: Client) -> None:
    report = client.check(EXACT)
    assert report.ok
    assert report.parameters == ("inputs", "outputs", "trace")
    assert client.check(Evaluator("def evaluate(:")).problems[0].code is ErrorCode.SYNTAX_ERROR
    assert client.info().backend == "bubblewrap"
    assert client.info().default_limits == Limits()
    client.ready()


def test_a_refused_request_raises_what_the_host_raised(client: Client) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.evaluate(replace(EXACT, limits=Limits(memory_mb=10**6)))
    assert refused.value.status == 422
    assert [problem.field for problem in refused.value.problems] == ["evaluator.limits.memory_mb"]
    assert refused.value.problems[0].hint
    with pytest.raises(InvalidRequest, match="JSON"):
        client.evaluate(EXACT, inputs={"a": {1, 2}})
    client._transport.http.headers["Host"] = "evil.example"
    with pytest.raises(Refused):
        client.info()


def test_nothing_there_is_reported_clearly(flavour: str) -> None:
    with (
        pytest.raises(HostUnreachable, match="evaluator-host serve"),
        open_client(flavour, f"http://127.0.0.1:{free_port()}") as client,
    ):
        client.info()


async def test_the_async_client_leaves_the_loop_free(server: Server) -> None:
    async with AsyncClient(server.url) as client:
        await client.ready()
        assert (await client.info()).version == evaluator_host.__version__
        jobs = [await client.jobs.create([EXACT], [{"correct_answer": n, "outputs": 1}]) for n in range(2)]
        watched = [job async for job in client.jobs.watch(jobs[0].id) if job.status.final]
        *ended, result = await asyncio.gather(
            *(client.jobs.wait(job.id) for job in jobs), client.evaluate(EXACT, inputs={"correct_answer": 1}, outputs=1)
        )
        assert ([job.id for job in (*watched, *ended)], result.score) == ([jobs[0].id, *(job.id for job in jobs)], 1.0)
        assert [row.result["score"] async for row in client.jobs.rows(jobs[1].id)] == [1.0]


def test_a_record_with_nan_is_stored_as_null_with_a_note(client: Client) -> None:
    uploaded = client.datasets.upload("with-nan", [{"a": 1.5}, {"a": float("nan")}], replace=True)
    assert [note for note in uploaded.notes if "NaN" in note]
    assert list(client.datasets.rows("with-nan")) == [{"a": 1.5}, {"a": None}]


def columns(client: Client, job: str, folder: Path) -> list[str]:
    """Return the columns of a job's CSV file."""
    client.jobs.download(job, folder / "rows.csv")
    return (folder / "rows.csv").read_text().splitlines()[0].split(",")


def test_a_job_is_held_and_ended(client: Client, tmp_path: Path) -> None:
    (tmp_path / "slow.csv").write_text("correct_answer,outputs\n" + "1,1\n" * 300)
    uploaded = client.datasets.upload("slow", tmp_path / "slow.csv", replace=True)
    assert (uploaded.rows, client.datasets.all()[0].name) == (300, "slow")
    code = "import time\ndef evaluate(i, o, t):\n    time.sleep(0.2)\n    return 1\n"
    job = client.jobs.create([Evaluator(code)], "slow", parallelism=1, idempotency_key=f"held-{tmp_path}")
    again = client.jobs.create([Evaluator(code)], "slow", parallelism=1, idempotency_key=f"held-{tmp_path}")
    assert (again.id, client.jobs.all(limit=1)[0].id) == (job.id, job.id)
    with pytest.raises(InUse, match="cancel it first"):
        client.jobs.delete(job.id)
    eventually(lambda: client.jobs.get(job.id).progress.done > 0)
    client.jobs.pause(job.id)
    eventually(lambda: client.jobs.get(job.id).status == "paused")
    begun = columns(client, job.id, tmp_path)
    time.sleep(0.5)
    assert not client.jobs.resume(job.id).status.final
    client.jobs.cancel(job.id)
    seen: list[str] = []
    assert client.jobs.wait(job.id, on_progress=lambda one: seen.append(one.status)).status == seen[-1] == "cancelled"
    with pytest.raises(InUse, match="has ended"):
        client.jobs.pause(job.id)
    ended = client.jobs.get(job.id)
    assert ended.started_at is not None
    assert ended.finished_at is not None
    assert 0 < ended.running_s < (ended.finished_at - ended.started_at).total_seconds() - 0.5
    assert columns(client, job.id, tmp_path) == begun  # so that a download that began before the end can be resumed
    client.jobs.delete(job.id)
    client.datasets.delete("slow")


def test_a_secret_is_listed_without_its_value(client: Client) -> None:
    made = client.secrets.set("model-key", "a secret of a model")
    assert [one.name for one in client.secrets.all()] == ["model-key"]
    assert client.secrets.get("model-key") == made
    client.secrets.delete("model-key")
    with pytest.raises(NotFound):
        client.secrets.get("model-key")


@pytest.mark.long
def test_a_stored_evaluator_is_migrated_and_has_traces(client: Client) -> None:
    legacy = Evaluator(
        "def evaluate(app_params, inputs, output, correct_answer):\n    return output == correct_answer\n"
    )
    client.evaluators.create("legacy-client", legacy)
    assert client.migrate(legacy, [Row({"correct_answer": 1}, 1)]).is_proven
    (dry,) = client.evaluators.migrate("legacy-client")
    assert (dry.version, dry.made) == (1, None)
    (done,) = client.evaluators.migrate("legacy-client", dry_run=False)
    assert (done.made, client.evaluators.get("legacy-client").version) == (2, 2)
    assert client.evaluators.traces("legacy-client") == []
    assert "legacy-client" in [one.name for one in client.evaluators.all()]
    client.evaluators.delete("legacy-client")


@pytest.mark.sampled(2)
def test_a_host_that_is_busy_is_tried_again_and_then_given_up(flavour: str) -> None:
    """If a host is busy, the client tries again, and gives up in the end. A small server stands in for the host,
    because a test cannot fill a real queue twice at the right moments.
    """
    with _BusyHost(busy=2) as host, open_client(flavour, host.url, retries=2) as client:
        client.ready()
    assert host.asked == 3
    with _BusyHost(busy=5) as host, open_client(flavour, host.url, retries=1) as client:
        with pytest.raises(Busy) as given_up:
            client.ready()
        assert given_up.value.retry_after_s == 0
    assert host.asked == 2


def test_a_server_that_is_not_a_host_is_recognised(flavour: str) -> None:
    with _BusyHost(busy=0) as host, open_client(flavour, host.url) as client, pytest.raises(HostError) as error:
        client.info()
    assert error.value.code == "host_unreachable"


def test_importing_the_package_imports_neither_client_nor_service() -> None:
    code = "import sys, evaluator_host; print([m for m in ('httpx', 'pydantic', 'docker') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
    for name in evaluator_host.__all__:
        assert getattr(evaluator_host, name) is not None


class _BusyHost:
    """A host that answers 429 a given number of times, and then 200 with an empty object."""

    def __init__(self, *, busy: int) -> None:
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                body = b'{"code": "busy", "detail": "full"}' if outer.asked <= busy else b"{}"
                self.send_response(429 if outer.asked <= busy else 200)
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
