"""Responses about schedules and alerts."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from evaluator_host.schemas.jobs import JobConfig


class Metric(StrEnum):
    """The figure that an alert watches."""

    MEAN = "mean"
    PASS_RATE = "pass_rate"  # noqa: S105 - no password
    FAILURE_RATE = "failure_rate"


@dataclass(frozen=True, slots=True)
class ScheduleReport:
    """A schedule, the answer of `GET /v1/schedules/{name}`.

    Attributes:
      name: Unique within the workspace.
      cron: `0 7 * * 1`: minute, hour, day of the month, month, day of the week.
      timezone: Name of the time zone of `cron`: `Europe/Berlin`.
      paused: Whether it runs nothing for now.
      next_runs: When it will run next, three times; empty while it is paused.
      last_at: The time for which it ran last; None before the first run.
      last_job: Id of the job of that run; None before the first run, and when no job could be made.
      last_error: Why the last run made no job; None when it did.
      missed: Runs that were left out: the host was stopped, or the job before still ran.
      evaluators: Labels of the job's evaluators.
      dataset: Name of the data set; None for rows of the schedule's own.
      mapping: Sources by row field, as given.
      config: Parallelism and limits.
      created_at: In UTC.
    """

    name: str
    cron: str
    timezone: str
    paused: bool
    next_runs: tuple[datetime, ...]
    last_at: datetime | None
    last_job: str | None
    last_error: str | None
    missed: int
    evaluators: tuple[str, ...]
    dataset: str | None
    mapping: dict[str, str]
    config: JobConfig
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AlertRule:
    """When an alert fires, and where it sends its message.

    Attributes:
      job: Id of the job that it watches; None for another source.
      schedule: Name of the schedule whose jobs it watches.
      live: Name of the evaluator whose live traces it watches.
      evaluator: Label or name of the one evaluator of a job to watch; None for each.
      metric: The figure.
      below: It fires when the figure is below this.
      above: It fires when the figure is above this.
      window_minutes: Of live traces: those received in the last minutes.
      min_rows: It fires for no fewer rows or traces than this.
      url: The webhook: a POST with a JSON body.
      secret: Name of the secret that signs messages (standardwebhooks.com); None for unsigned ones.
    """

    metric: Metric
    url: str
    job: str | None = None
    schedule: str | None = None
    live: str | None = None
    evaluator: str | None = None
    below: float | None = None
    above: float | None = None
    window_minutes: int = 60
    min_rows: int = 1
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """A message of an alert.

    Attributes:
      id: Sent as `webhook-id`; the same in each attempt.
      type: `alert.firing`, `alert.resolved` or `alert.test`.
      created_at: In UTC.
      attempts: Requests so far.
      status: `waiting`, `sent` or `failed`, which is after the last attempt.
      error: Why the last attempt failed; None when it did not.
    """

    id: str
    type: str
    created_at: datetime
    attempts: int
    status: str
    error: str | None


@dataclass(frozen=True, slots=True)
class AlertReport:
    """An alert, the answer of `GET /v1/alerts/{name}`.

    Attributes:
      name: Unique within the workspace.
      rule: When it fires, and where it sends its message.
      paused: Whether it watches nothing for now.
      firing: Whether the figure was out of bounds when it was looked at last.
      value: The figure then; None before, and where there was none.
      checked_at: When that was; None before the first look at rows.
      deliveries: Its last messages, the newest first.
      created_at: In UTC.
    """

    name: str
    rule: AlertRule
    paused: bool
    firing: bool
    value: float | None
    checked_at: datetime | None
    deliveries: tuple[DeliveryReport, ...]
    created_at: datetime
