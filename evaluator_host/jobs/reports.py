"""From a job as it is kept to what is said of it."""

from dataclasses import replace

import orjson

from evaluator_host.jobs.spec import spec_from_json
from evaluator_host.schemas.jobs import JobError, JobProgress, JobReport
from evaluator_host.store.datasets import Dataset
from evaluator_host.store.job import Job, JobEvaluator


def job_report(
    job: Job, evaluators: list[JobEvaluator], dataset: Dataset, *, generated: int | None = None
) -> JobReport:
    """Return what is said of a job; `generated` counts the rows that its model was asked."""
    request = spec_from_json(job.request)
    return JobReport(
        id=job.id,
        status=job.status,
        evaluators=tuple(evaluator.label for evaluator in evaluators),
        dataset=dataset.name or dataset.id,
        mapping=request.mapping,
        target=request.target,
        config=request.config,
        progress=replace(_progress(job, job.rows * len(evaluators)), generated=generated),
        error=JobError(**orjson.loads(job.error)) if job.error else None,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def _progress(job: Job, rows: int) -> JobProgress:
    rate = job.done / job.running_s if job.done and job.running_s > 0 else None
    left = max(0, rows - job.done)
    eta_s = left / rate if rate and not job.status.final else None
    return JobProgress(
        rows=rows,
        done=job.done,
        failed=job.failed,
        rows_per_s=None if rate is None else round(rate, 1),
        eta_s=None if eta_s is None else round(eta_s, 1),
    )
