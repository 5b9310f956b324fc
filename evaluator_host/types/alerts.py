"""Responses about schedules and alerts."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from .doc import Doc
from .jobs import JobConfig

_NAME: Final = {"min_length": 1, "max_length": 200}


class Metric(StrEnum):
    """The number that an alert watches."""

    MEAN = "mean"
    PASS_RATE = "pass_rate"  # noqa: S105 - no password
    FAILURE_RATE = "failure_rate"


@dataclass(frozen=True, slots=True)
class ScheduleReport:
    """A schedule, the response to `GET /v1/schedules/{name}`."""

    name: Annotated[str, Doc("Name, unique within the workspace.")]
    cron: Annotated[str, Doc("`0 7 * * 1`: minute, hour, day of the month, month, day of the week.")]
    timezone: Annotated[str, Doc("Name of the time zone of `cron`: `Europe/Berlin`.")]
    paused: Annotated[bool, Doc("Whether the schedule is paused. A paused schedule creates no jobs.")]
    next_runs: Annotated[
        tuple[datetime, ...], Doc("The next three times at which the schedule will run; empty while it is paused.")
    ]
    last_at: Annotated[datetime | None, Doc("Time of the last run, on schedule or by hand; None before the first run.")]
    last_job: Annotated[
        str | None, Doc("Id of the job of the last run; None before the first run, and if no job could be created.")
    ]
    last_error: Annotated[str | None, Doc("Why the last run did not create a job; None if it did.")]
    missed: Annotated[
        int,
        Doc(
            "Number of times without a job, because the host was stopped, the previous job still ran, or the job could "
            "not be created."
        ),
    ]
    evaluators: Annotated[tuple[str, ...], Doc("Labels of the job's evaluators.")]
    dataset: Annotated[str | None, Doc("Name of the data set; None if the schedule itself contains the rows.")]
    mapping: Annotated[dict[str, str], Doc("The column or template for each row field, as in the request.")]
    config: Annotated[JobConfig, Doc("Parallelism and limits.")]
    created_at: Annotated[datetime, Doc("In UTC.")]
    missed_more: Annotated[
        bool, Doc("Whether more times than `missed` had no job: at most 100 are counted each time the host stops.")
    ] = False

    @property
    def missed_text(self) -> str:
        """Return the number of times without a job, in words."""
        return f"at least {self.missed}" if self.missed_more else str(self.missed)


@dataclass(frozen=True, slots=True)
class AlertRule:
    """When an alert fires, and where it sends its messages."""

    metric: Annotated[Metric, Doc("The metric to watch.")]
    url: Annotated[
        str | None,
        Doc("The webhook: a POST with a JSON body; None to show messages only in the workbench.", max_length=2000),
    ] = None
    job: Annotated[
        str | None, Doc("Id of the job that the alert watches; None if it watches something else.", **_NAME)
    ] = None
    schedule: Annotated[str | None, Doc("Name of the schedule whose jobs the alert watches.", **_NAME)] = None
    live: Annotated[str | None, Doc("Name of the evaluator whose live traces the alert watches.", **_NAME)] = None
    evaluator: Annotated[
        str | None, Doc("Label or name of the evaluator to watch in a job; None for all evaluators.", **_NAME)
    ] = None
    below: Annotated[float | None, Doc("The alert fires when the metric is below this value.")] = None
    above: Annotated[float | None, Doc("The alert fires when the metric is above this value.")] = None
    window_minutes: Annotated[int, Doc("For `live`: use the traces of this many minutes.", ge=1, le=10_080)] = 60
    min_rows: Annotated[
        int, Doc("The alert fires only if the metric covers at least this many rows or traces.", ge=1, le=1_000_000)
    ] = 1
    secret: Annotated[
        str | None,
        Doc("Name of the secret that signs messages (standardwebhooks.com); None if messages are not signed.", **_NAME),
    ] = None


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """A message of an alert, and its delivery to the webhook."""

    id: Annotated[str, Doc("Sent as `webhook-id`; the same in each attempt.")]
    type: Annotated[str, Doc("`alert.firing`, `alert.resolved` or `alert.test`.")]
    text: Annotated[str, Doc("The message, as one sentence.")]
    job: Annotated[str | None, Doc("Id of the job that the message is about; None for live traces and tests.")]
    created_at: Annotated[datetime, Doc("In UTC.")]
    attempts: Annotated[int, Doc("Number of attempts to send the message so far.")]
    status: Annotated[str, Doc("`waiting`, `sent`, `failed` (after the last attempt), `shown` (without a webhook).")]
    error: Annotated[str | None, Doc("Why the last attempt failed; None when it succeeded.")]


@dataclass(frozen=True, slots=True)
class AlertReport:
    """An alert, the response to `GET /v1/alerts/{name}`."""

    name: Annotated[str, Doc("Name, unique within the workspace.")]
    rule: Annotated[AlertRule, Doc("When the alert fires, and where it sends its message.")]
    paused: Annotated[bool, Doc("Whether the alert is paused. A paused alert watches nothing.")]
    firing: Annotated[bool, Doc("Whether the metric was out of bounds at the last check.")]
    acknowledged: Annotated[
        bool,
        Doc(
            "Whether somebody has seen that the alert fired, or has paused it; the workbench then no longer counts it."
        ),
    ]
    value: Annotated[
        float | None,
        Doc("The value of the metric at the last check; None if there was no check, or no row had a value."),
    ]
    checked_at: Annotated[datetime | None, Doc("Time of the last check of the metric; None before the first check.")]
    deliveries: Annotated[
        tuple[DeliveryReport, ...],
        Doc("The alert's last 20 messages, and older ones that wait to be sent; at most 100, newest first."),
    ]
    unsent: Annotated[int, Doc("Number of messages that were dropped before they were sent, because 100 waited.")]
    created_at: Annotated[datetime, Doc("In UTC.")]
