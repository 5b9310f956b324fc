"""Measures jobs on a real host with a real database: rows are uploaded, scored, stored and downloaded."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation, Json
from evaluator_host.types.jobs import JobStatus
from tests.benchmarks.floors import EXACT_MATCH, ROW
from tests.processes import peak_mb
from tests.server import COMMAND, Server, new_home

ROWS = 20_000
MANY_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class JobRun:
    """One job's figures, and the host's highest resident memory between upload and download."""

    rows_per_s: float
    peak_mb: float


def run(rows: int, isolation: Isolation) -> JobRun:
    """Run a job on a new host that stores its records in SQLite."""
    with tempfile.TemporaryDirectory(prefix="eh-bench-") as name:
        folder = Path(name)
        environment = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder / 'host.db'}"}
        server = Server(
            command=COMMAND, data_dir=new_home(folder), log=folder / "log", environment=environment, few_sandboxes=False
        )
        with server, Client(server.url) as client:
            client.datasets.upload("rows", _rows(rows))
            started = time.perf_counter()
            job = client.jobs.wait(client.jobs.create([Evaluator(EXACT_MATCH)], "rows", isolation=isolation).id)
            seconds = time.perf_counter() - started
            assert (job.status, job.progress.done, job.progress.failed) == (JobStatus.COMPLETED, rows, 0), server.log
            client.jobs.download(job.id, folder / "rows.csv")
            (figures,) = client.jobs.results(job.id).evaluators
            assert figures.scored == rows
            return JobRun(rows / seconds, peak_mb(server.process.pid))


def _rows(count: int) -> Iterator[dict[str, Json]]:
    return ({**ROW["inputs"], "n": n, "outputs": ROW["outputs"]} for n in range(count))
