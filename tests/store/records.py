"""Makes data sets, jobs and results for tests of the store."""

import json

from evaluator_host.platform.datasets.table import Dataset, DatasetFacts, new_dataset_id
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.platform.store.store import Store
from evaluator_host.types.stored import BadLine
from tests.tables import tables

FACTS = DatasetFacts("jsonl", 3, 1, (BadLine(2, "not JSON"),), ("a", "b"), 42, "sha256:00")
WORKSPACE = "default"


async def dataset(store: Store, name: str | None = None) -> Dataset:
    return await tables(store).datasets.add_dataset(new_dataset_id(), WORKSPACE, name, FACTS)


def evaluators(count: int = 1) -> list[JobEvaluator]:
    return [JobEvaluator(n, f"exact@{n}", "exact", n, "sha256:11", "{}", None) for n in range(count)]


async def queued(store: Store, *, rows: int = 3, count: int = 1, key: str | None = None) -> Job:
    made = await dataset(store)
    return await tables(store).jobs.add_job(
        WORKSPACE, dataset_id=made.id, request="{}", rows=rows, evaluators=evaluators(count), idempotency_key=key
    )


def result(
    row: int, score: float | None = 1.0, *, position: int = 0, passed: bool | None = None, error: str | None = None
) -> StoredResult:
    status = "failed" if error else "skipped" if score is None else "scored"
    metrics = {} if score is None else {"score": score}
    return StoredResult(
        position, row, status, score, passed, error, 1.5 + row, json.dumps(metrics), json.dumps({"row": row})
    )
