"""Counts the runs of jobs that ended, and logs each run that failed, without its code, rows or secrets."""

import json
import logging

from prometheus_client import Counter

from evaluator_host.engine.service.metrics import Metrics
from evaluator_host.platform.jobs.records import Job
from evaluator_host.types.jobs import JobStatus

_CHARACTERS = 300  # maximum number of characters of a reason in the log
_ENDS = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.PAUSED)
_log = logging.getLogger(__name__)


def ended_jobs(metrics: Metrics) -> Counter:
    """Return the metric that counts ended runs of jobs for each final status."""
    return metrics.counter("jobs", "Ended runs of jobs, by final status.", "status", values=_ENDS)


def record_end(metrics: Metrics, job: Job, status: JobStatus, error: str | None) -> None:
    """Count the end of a job's run. If it failed, or the host paused it, log why."""
    if status not in _ENDS:
        return
    ended_jobs(metrics).labels(status).inc()
    if error is not None:
        _log.warning("job %s of workspace %s %s: %s", job.id, job.workspace_id, status, _reason(error))


def _reason(error: str) -> str:
    """Return why a job failed, in one line. A failed row's message is left out, since user code may have written it."""
    known = json.loads(error)
    code = known["code"]
    if "row" in known:
        return f"{code}, first in row {known['row']}"
    return f"{code}: {' '.join(known['message'].split())[:_CHARACTERS]}"
