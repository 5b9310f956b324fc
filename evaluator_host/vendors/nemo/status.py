"""Translates the status of this host's jobs to NeMo's terms."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from evaluator_host.types.jobs import JobReport, JobStatus
from evaluator_host.types.results import JobRow

COMPLETED: Final = "completed"
_WHERE: Final = re.compile(r"\AEvaluation failed during metric scoring for metric '[^\n]*?' on row \d+: ")
_WORDS: Final = {
    JobStatus.QUEUED: "pending",
    JobStatus.RUNNING: "active",
    JobStatus.PAUSED: "paused",
    JobStatus.COMPLETED: COMPLETED,
    JobStatus.FAILED: "error",
    JobStatus.CANCELLED: "cancelled",
}


@dataclass(frozen=True, slots=True)
class JobState:
    """The status of a job in NeMo's terms.

    Attributes:
      status: NeMo's name of the status.
      details: Progress: `{"rows", "done", "failed", "generated"?, "job"}`.
      error: Reason for a failure, `{"message", "code"?}`; None if the job did not fail.
      changed_at: When the job ended, or else when it began; None before it begins.
      lost: Whether the host's job behind this NeMo job was deleted.
    """

    status: str
    details: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    changed_at: datetime | None = None
    lost: bool = False

    @classmethod
    def gone(cls) -> "JobState":
        """Return the status of a NeMo job after somebody deleted its job on this host through `/v1/jobs`."""
        return cls(
            "error",
            error={"message": "the results of this job are gone: its job on the host was deleted through /v1/jobs"},
            lost=True,
        )


def state_of(report: JobReport) -> JobState:
    """Convert the status of the host's job to NeMo's terms."""
    progress = report.progress
    details: dict[str, Any] = {"rows": progress.rows, "done": progress.done, "failed": progress.failed}
    if progress.generated is not None:
        details["generated"] = progress.generated
    error = None if report.error is None else {"message": report.error.message, "code": report.error.code}
    return JobState(
        _WORDS[report.status], {**details, "job": report.id}, error, report.finished_at or report.started_at
    )


def plain_message(message: str) -> str:
    """Return a row's error message without the metric's and the row's name, which the runner adds to some messages."""
    return _WHERE.sub("", message, count=1)


def failure_of(row: JobRow, key: str | None = None) -> str:
    """Return why a row failed. With `key`, the metric's key, the message is in NeMo's wording."""
    message = plain_message(str((row.result["error"] or {}).get("message") or "the row was skipped"))
    if key is None:
        return message
    return f"Evaluation failed during metric scoring for metric {key!r} on row {row.index}: {message}"
