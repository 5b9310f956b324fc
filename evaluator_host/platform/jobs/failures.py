"""Counts the failed rows of a running job, and decides how the job ends after too many failures or another fault."""

import logging
from collections import Counter
from typing import Final

from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import Json
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import HOST_FAULTS, EvaluationError, EvaluationResult

_ROW_PATIENCE: Final = 10  # number of failures because of the host after which a row is stored as failed

_log = logging.getLogger(__name__)


class TooManyFailures(Exception):
    """More results failed than `max_failures` allows. The message has both numbers, and why the first row failed."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row  # number of the first row that failed in this run; None if all failures are from earlier runs


class RowFailures:
    """Decides when too many results of a job have failed. At most `most` results may fail; None allows any number.

    `evaluators` is the number of the job's evaluators. Each row has one result from each of them.
    """

    def __init__(self, most: int | None, *, evaluators: int = 1) -> None:
        self._unit = "row" if evaluators == 1 else "result"
        self._unanswered = 0  # number of rows that got no answer from the model
        self._most = most
        self._first: tuple[int, str] | None = None  # the failed row with the lowest number, and its message
        self._host_faults: Counter[tuple[int, int]] = Counter()  # how often the host failed, keyed by evaluator and row

    def waits(self, evaluator: int, row: int, result: EvaluationResult) -> bool:
        """Whether to try a row again later, because its sandboxes were lost or got no processor time."""
        if result.error is None or result.error.code not in HOST_FAULTS:
            return False
        self._host_faults[evaluator, row] += 1
        return self._host_faults[evaluator, row] < _ROW_PATIENCE

    def note(self, row: int, error: EvaluationError | None) -> None:
        """If the row failed and has the lowest number so far, remember its number and its message."""
        if error is not None and (self._first is None or row < self._first[0]):
            self._first = row, error.message

    def begin_with(self, unanswered: int) -> None:
        """Count the rows for which the model gave no answer in earlier runs."""
        self._unanswered = unanswered

    def note_unanswered(self, row: int, error: EvaluationError) -> None:
        """Count a row for which the model gave no answer."""
        self._unanswered += 1
        self.note(row, error)

    def require_few(self, failed: int) -> None:
        """Check how many results of the job have failed, and how many rows got no answer from the model.

        Raises:
          TooManyFailures: more results failed, or more rows got no answer, than the job allows.
        """
        unit = self._unit if failed >= self._unanswered else "row"
        failed = max(self._unanswered, failed)
        if self._most is None or failed <= self._most:
            return
        allowed = f"{_counted(failed, unit)} failed, but the job allows at most {self._most}"
        if self._first is None:
            raise TooManyFailures(allowed)
        row, message = self._first
        raise TooManyFailures(f"row {row}: {message} ({allowed})", row)


def ending(job_id: str, fault: BaseException | None) -> tuple[JobStatus, str | None]:
    """Return the final status of a job, and its error as JSON.

    `fault` is the exception that ended the run of the job, or None if the job is done.
    """
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    match fault:
        case None:
            return JobStatus.COMPLETED, None
        case HostError():
            problems = [f"{problem.field}: {problem.message}" for problem in fault.problems]
            return JobStatus.FAILED, error_json(fault.code, "; ".join([fault.detail, *problems]))
        case TooManyFailures():
            return JobStatus.FAILED, error_json("max_failures", str(fault), fault.row)
        case _:
            _log.error("job %s failed because of a fault of this host", job_id, exc_info=fault)
            return JobStatus.FAILED, error_json("internal", "the host has an internal fault; its log has the details")


def error_json(code: str, message: str, row: int | None = None) -> str:
    """Encode the error of a failed job as JSON for the store; `row` is the number of the row that caused the error."""
    error: dict[str, Json] = {"code": code, "message": message}
    return encode_json(error if row is None else {**error, "row": row}).decode()


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit} has" if count == 1 else f"{count} {unit}s have"
