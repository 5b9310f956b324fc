"""Online jobs on a real host with real sandboxes: no row is lost, no question is sent twice, and no answer of the host
contains the key.
"""

import contextlib
import json
import os
import pty
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.platform.terminal.job_tables import estimate_text
from evaluator_host.types.evaluator import Evaluator, Isolation
from evaluator_host.types.jobs import JobReport, JobStatus, Target
from tests import forked
from tests.keyed import eventually
from tests.model_server import DROP, Fault, ModelServer, Reply, error_body
from tests.server import COMMAND, Server, new_home

KEY = "sk-live-8d1f0c55aa37e9b2"
EXACT = Evaluator("def evaluate(inputs, outputs, trace):\n    return outputs == 'answer to ' + inputs['question']\n")
TOKENS = Evaluator(
    "def evaluate(inputs, outputs, trace):\n"
    "    unit = next(iter(trace['spans'].values()))['attributes']['ag']['metrics']['unit']\n"
    "    assert unit['duration']['total'] > 0\n"
    "    return {'score': 1.0, 'tokens': unit['tokens']['total']}\n"
)
TRANSIENT = (500, 503, DROP, Reply(429, error_body("slow down"), {"Retry-After": "1"}))


pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("online"))


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with host(home, "log") as running:
        yield running


def host(home: Path, log: str) -> Server:
    database = f"sqlite:///{home / 'evaluator-host.db'}"
    return Server(data_dir=home, log=home.parent / log, environment={"EVALUATOR_HOST_DATABASE_URL": database})


def command(server: Server, *arguments: str, text: str = "") -> str:
    done = forked.run([*arguments, "--url", server.url], given=text)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def everything_said(client: Client, job: JobReport) -> Iterator[str]:
    """Yield all that the API says about a job and about secrets, as text."""
    for path in (
        f"/v1/jobs/{job.id}",
        f"/v1/jobs/{job.id}/results",
        f"/v1/jobs/{job.id}/rows?limit=1000",
        "/v1/secrets",
    ):
        yield client._transport.http.get(path).text


@pytest.mark.long
def test_200_rows_with_errors_and_none_is_lost(home: Path, server: Server) -> None:
    rows = [{"question": f"q{n}"} for n in range(200)]

    def faults(question: str, attempt: int) -> Fault:
        number = int(question[1:])
        if number % 20 == 7:  # 5 % of the questions fail at first
            return TRANSIENT[number // 20 % len(TRANSIENT)] if attempt == 1 else None
        return Reply(401, error_body(f"Incorrect API key provided: {KEY}")) if number in (11, 12) else None

    with ModelServer(key=KEY, faults=faults) as model, Client(server.url) as client:
        printed = command(server, "secrets", "set", "openai", text=f"{KEY}\n") + command(server, "secrets", "list")
        target = Target(model.url, "m-1", api_key="openai", prompt_template="{{ question }}", concurrency=16)
        job = client.jobs.wait(client.jobs.create([EXACT, TOKENS], rows, target=target, isolation=Isolation.BATCH).id)
        assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, 400, 4)
        assert job.progress.generated == 200
        found = list(client.jobs.rows(job.id))
        assert Counter(row.index for row in found) == dict.fromkeys(range(200), 2)
        assert {row.index for row in found if row.result["status"] == "failed"} == {11, 12}
        assert all(row.result["score"] == 1 for row in found if row.index not in (11, 12))
        assert {row.index for row in found if len(row.request["attempts"]) == 2} == set(range(7, 200, 20))
        assert Counter(model.asked) == {f"q{n}": 2 if n % 20 == 7 else 1 for n in range(200)}
        said = [printed, *everything_said(client, job)]
        assert "Incorrect API key provided: [masked]" in "".join(said)
        command(server, "secrets", "delete", "openai")
        refused = client._transport.http.put("/v1/secrets/openai", json={"value": 7, "other": KEY})
        assert refused.status_code == 422
        said.append(refused.text)
        written = [path.read_bytes() for path in home.rglob("*") if path.is_file() and "toolchain" not in path.parts]
        assert len(written) > 3  # the host has written files: the database, its journal, the key for secrets, the rows
        assert all(KEY.encode() not in content for content in written)
        assert KEY not in "".join(said) + server.log


@pytest.mark.long
def test_a_host_that_is_killed_asks_no_row_again_that_has_an_answer(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    rows = [{"question": f"q{n}"} for n in range(120)]
    with ModelServer(faults=lambda question, attempt: 0.1) as model:
        first = host(home, "first").wait_until_ready()
        with Client(first.url) as client:
            target = Target(model.url, "m-1", prompt_template="{{ question }}", concurrency=4)
            job = client.jobs.create([EXACT], rows, target=target)
            until = time.monotonic() + 60
            while (client.jobs.get(job.id).progress.generated or 0) < 30:
                assert time.monotonic() < until
                time.sleep(0.05)
        first.kill()
        with sqlite3.connect(home / "evaluator-host.db") as database:
            kept = {f"q{row}" for (row,) in database.execute("SELECT row FROM outputs")}
        database.close()
        assert 30 <= len(kept) < 120
        eventually(lambda: model.connections == 0)
        before = len(model.asked)
        with host(home, "second") as second, Client(second.url) as client:
            ended = client.jobs.wait(job.id)
            assert (ended.status, ended.progress.done, ended.progress.failed) == (JobStatus.COMPLETED, 120, 0)
            assert sorted(row.index for row in client.jobs.rows(job.id)) == list(range(120))
        asked_again = model.asked[before:]
        assert kept.isdisjoint(asked_again)
        assert sorted(asked_again) == sorted({row["question"] for row in rows} - kept)


def test_a_job_is_made_with_a_model_on_the_command_line(server: Server, tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415 - the import takes a third of a second

    data, code = tmp_path / "rows.jsonl", tmp_path / "exact.py"
    data.write_text("".join(json.dumps({"question": f"q{n}"}) + "\n" for n in range(3)))
    code.write_text(EXACT.code)
    with ModelServer(key=KEY) as model, Client(server.url) as client:
        client.datasets.upload("questions", data)
        client.secrets.set("openai", KEY)
        assert client.secrets.get("openai").name == "openai"
        said = command(
            server, "jobs", "create", "-e", str(code), "-d", "questions", "--wait", "--json",
            "--target-url", model.url, "--model", "m-1", "--prompt", "{{ question }}", "--system", "Be brief.",
            "--api-key-secret", "openai", "--inference", "temperature=0", "--inference", "user=alice",
        )  # fmt: skip
        job = json.loads(said)
        assert (job["status"], job["progress"]["generated"], job["target"]["api_key"]) == ("completed", 3, "openai")
        said_by_row = [f"answer to q{n}" for n in range(3)]
        assert [row.output for row in client.jobs.rows(job["id"])] == said_by_row
        assert [record["output"] for record in client.jobs.records(job["id"])] == said_by_row
        for file in (tmp_path / "rows.csv", tmp_path / "rows.parquet"):
            client.jobs.download(job["id"], file)
            frame = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
            assert list(frame["output"]) == said_by_row
    assert (model.bodies[0]["temperature"], model.bodies[0]["user"]) == (0, "alice")
    assert model.bodies[0]["messages"][0]["content"] == "Be brief."


@pytest.mark.long
def test_an_estimate_counts_the_requests_to_the_target(server: Server) -> None:
    with ModelServer() as model, Client(server.url) as client:
        target = Target(model.url, "m-1", prompt_template="{{ question }}")
        found = client.jobs.estimate([EXACT, EXACT], [{"question": "q"}] * 50, rows=2, target=target)
        assert (found.rows, found.sampled, found.usage.requests, len(model.asked)) == (100, 4, 0, 2)
        assert found.target is not None
        assert (found.target.requests, found.target.output_tokens, found.target.cost) == (50, 50 * 3, None)
        assert f"the target would answer 50 requests, {found.target.input_tokens} + 150 tokens" in str(
            estimate_text(found)
        )
        body = {
            "evaluators": [{"code": "def evaluate(inputs, outputs, trace):\n    return 1 / 0\n"}],
            "dataset": {"rows": [{"question": "q"}] * 50},
            "target": {"base_url": model.url, "model": "m-1", "prompt_template": "{{ question }}"},
            "config": {"max_failures": 0},
        }
        ended = client._transport.http.post("/v1/jobs/estimate?rows=10", json=body).json()
        assert ended["sampled"] < 10, "the first failure must end the sample"
        assert (ended["target"]["requests"], ended["target"]["output_tokens"]) == (50, 50 * 3)


@pytest.mark.long
def test_the_bar_shows_how_many_rows_the_model_was_asked_about(server: Server) -> None:
    rows = [{"question": f"q{n}"} for n in range(30)]
    # rows whose answers wait until the progress bar shows the number of rows before them
    held = {10: threading.Event(), 20: threading.Event()}

    def faults(question: str, attempt: int) -> Fault:
        number = int(question[1:])
        if number in held:
            held[number].wait(40)
        return None

    ours, theirs = pty.openpty()
    with ModelServer(faults=faults) as model, Client(server.url) as client:
        target = Target(model.url, "m-1", prompt_template="{{ question }}", concurrency=1)
        job = client.jobs.create([EXACT, TOKENS], rows, target=target)
        watching = subprocess.Popen(
            [*COMMAND, "jobs", "watch", job.id, "--url", server.url],
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},  # both variables are read when the program starts
        )
        os.close(theirs)
        shown = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal, watching:
            for piece in pieces(terminal):
                shown += piece
                for number, event in held.items():
                    if f"asked about {number} of 30 rows".encode() in shown:
                        event.set()
    assert watching.returncode == 0
    assert all(event.is_set() for event in held.values()), shown


def pieces(terminal: RawIOBase) -> Iterator[bytes]:
    """Yield the text that programs write to a terminal, until all these programs have ended."""
    with contextlib.suppress(OSError):
        while piece := terminal.read(1 << 16):
            yield piece
