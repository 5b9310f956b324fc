"""Makes data sets, jobs and results for tests of the store."""

import json
from collections.abc import Sequence

from evaluator_host.platform.datasets.table import Dataset, DatasetFacts, new_dataset_id
from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.platform.jobs.records import Job, JobEvaluator
from evaluator_host.platform.jobs.spec import StoredSpec, evaluator_to_json, spec_to_json
from evaluator_host.platform.store.store import Store
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import Failures, JobConfig, JobStatus
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


async def finished(
    store: Store,
    scores: list[float | None],
    *,
    name: str | None = None,
    failures: Failures = Failures.EXCLUDE,
    request: str | None = None,
    versions: Sequence[int] = (0,),
) -> Job:
    """Return a completed job with one row for each of these scores; None stands for a failed row.

    The job has these versions of one evaluator, and all of them give the same scores.
    """
    content = evaluator_to_json(Evaluator("code"))
    copies = [
        JobEvaluator(position, f"exact@{version}", "exact", version, "sha256:11", content, None)
        for position, version in enumerate(versions)
    ]
    request = request or spec_to_json(StoredSpec(config=JobConfig(failures=failures)))
    data = await tables(store).datasets.add_dataset(new_dataset_id(), WORKSPACE, None, FACTS)
    job = await tables(store).jobs.add_job(
        WORKSPACE, dataset_id=data.id, request=request, rows=len(scores), evaluators=copies, name=name
    )
    assert await tables(store).job_queue.claim_job(job, "host")
    for row, score in enumerate(scores):
        failed = "timeout" if score is None else None
        passed = None if failed else bool(score)
        results = [result(row, score, position=one.position, passed=passed, error=failed) for one in copies]
        await tables(store).job_queue.save(job.id, "host", results)
    assert await tables(store).job_queue.release_job(job.id, "host", JobStatus.COMPLETED)
    return job
