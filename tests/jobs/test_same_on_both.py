"""A job gives the same statistics, rows in every order, downloads and comparisons on SQLite and on PostgreSQL."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.types.evaluator import Evaluator, Isolation, Language
from tests.databases import ENGINES, Databases
from tests.server import Server, new_home

ODD = [
    None, True, False, 0, -0.0, 7, 10**30, 0.1, 5e-324, 1.7e308, "", "=1+1", "a\u0000b", "ü 漢字 🙂 \u2028", "x" * 5000,
    "'; DROP TABLE results; --", [], [1, "two", None], {}, {"a": {"b": [1.5]}, "ключ": "\u001b[31m"},
]  # fmt: skip
ROWS = [{"n": n, "value": value, "outputs": n % 7} for n, value in enumerate(ODD * 6)]
# the number `n` decides: some rows fail, some lack the metric `half`, some have an infinite metric, many have the same
# score, …
PYTHON = """
def evaluate(inputs, outputs, trace):
    n = inputs["n"]
    print("row", n)
    if n % 13 == 5:
        raise ValueError(repr(inputs["value"]))
    if n % 17 == 3:
        return "no score"
    made = {"score": outputs / 7 + OFFSET, "label": "odd" if n % 2 else "даже", "reason": str(inputs["value"])}
    if n % 3:
        made["half"] = n / 2
    if n % 5 == 0:
        made["huge"] = 10 ** (n * 3)
    return made
"""
JAVASCRIPT = "exports.evaluate = (inputs, outputs) => ({ score: outputs > 3, text: typeof inputs.value });"
ORDERS = ("row", "score", "-score")
FILTERS: tuple[dict[str, Any], ...] = (
    {"status": "failed"},
    {"passed": "true"},
    {"passed": "false", "evaluator": "typed@1"},
    {"min_score": 0.2, "max_score": 0.8},
    {"error": "user_exception"},
)

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(300),
    pytest.mark.long("this runs jobs on two hosts; tests/store tests every statement on both databases"),
]


def told(database_url: str, folder: Path) -> Iterator[tuple[str, Any]]:
    """Run two jobs on a new host, and yield the host's answers about the jobs, by request."""
    folder.mkdir()
    environment = {"EVALUATOR_HOST_DATABASE_URL": database_url}
    host = Server(data_dir=new_home(folder), log=folder / "log", environment=environment)
    with host as server, Client(server.url) as client:
        client.datasets.upload("odd", ROWS)
        first = Evaluator(f"OFFSET = 0\n{PYTHON}", threshold=0.5)
        client.evaluators.create("graded", first)
        client.evaluators.create("typed", Evaluator(JAVASCRIPT, language=Language.JAVASCRIPT))
        broken = Evaluator("def evaluate(:\n")
        jobs = [_ran(client, ["graded", "typed", broken])]
        client.evaluators.update("graded", Evaluator(f"OFFSET = 0.25\n{PYTHON}", threshold=0.5))
        jobs.append(_ran(client, ["graded", "typed"]))
        yield "odd", client.datasets.get("odd").columns
        yield "rows of the data set", list(client.datasets.rows("odd"))
        yield "compared", client._transport.http.get(f"/v1/jobs/{jobs[0]}/compare/{jobs[1]}").json()
        for number, job in enumerate(jobs):
            for name, said in _of(client, job, folder):
                yield f"job {number}, {name}", said


def _ran(client: Client, evaluators: list[Evaluator | str]) -> str:
    job = client.jobs.create(evaluators, "odd", isolation=Isolation.BATCH, limit_samples=len(ROWS) - 1)
    ended = client.jobs.wait(job.id)
    assert ended.status == "completed"
    return job.id


def _of(client: Client, job: str, folder: Path) -> Iterator[tuple[str, Any]]:
    import pandas as pd  # noqa: PLC0415 - the import takes a third of a second

    yield "job", _steady(client._transport.http.get(f"/v1/jobs/{job}").json())
    yield "results", _steady(client._transport.http.get(f"/v1/jobs/{job}/results").json())
    for order in ORDERS:
        yield order, [_steady(_decoded(row)) for row in client.jobs.rows(job, sort=order)]
    for chosen in FILTERS:
        yield str(chosen), [(row.index, row.evaluator) for row in client.jobs.rows(job, **chosen)]
    for suffix in ("jsonl", "csv", "parquet"):
        client.jobs.download(job, folder / f"rows.{suffix}")
    # split at "\n" only, because U+2028 does not end a line
    lines = (folder / "rows.jsonl").read_text().removesuffix("\n").split("\n")
    yield "rows.jsonl", [_steady(json.loads(line)) for line in lines]
    for frame in (pd.read_csv(folder / "rows.csv", dtype=str), pd.read_parquet(folder / "rows.parquet")):
        yield f"file of {len(frame.columns)} columns", frame.drop(columns="run_ms").to_csv()


def _decoded(row: Any) -> Any:
    return {"index": row.index, "evaluator": row.evaluator, "row": row.row, "result": row.result}


def _steady(said: Any) -> Any:
    """Return an answer without ids, times and memory sizes."""
    if isinstance(said, dict):
        return {name: _steady(value) for name, value in said.items() if name not in _VARYING}
    return [_steady(value) for value in said] if isinstance(said, list) else said


_VARYING = {
    "id", "previous", "created_at", "started_at", "finished_at", "rows_per_s", "eta_s", "running_s", "timing_ms", "run_ms", "sandbox",
}  # fmt: skip


def test_a_job_comes_to_the_same_whatever_database_keeps_it(databases: Databases, tmp_path: Path) -> None:
    said = {engine: dict(told(databases.make(engine), tmp_path / engine)) for engine in ENGINES}
    one, other = said.values()
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    statistics = one["job 0, results"]["evaluators"]
    assert [(of["scored"] > 50, of["failed"] > 10) for of in statistics] == [(True, True), (True, False), (False, True)]
    assert one["compared"][0]["improved"] > 100
    assert len(one["job 0, rows.jsonl"]) == 3 * (len(ROWS) - 1)
    assert all(one[f"job 0, {chosen}"] for chosen in FILTERS)
