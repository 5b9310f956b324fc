"""Client methods for schedules and alerts: `client.schedules`, `client.alerts`."""

from dataclasses import asdict
from typing import Any

from ..types.alerts import AlertReport, AlertRule, ScheduleReport
from ..types.jobs import JobReport
from .calls import Call, encode
from .jobs import job_body
from .transport import NamedVerbs, TransportT, verb


class ScheduleVerbs(NamedVerbs[TransportT, ScheduleReport]):
    """Methods for the schedules in your key's workspace. Deleting a schedule keeps its jobs."""

    _PATH = "/v1/schedules"
    _REPORT = ScheduleReport

    @verb
    async def create(self, /, name: str, cron: str, *, timezone: str = "UTC", **job: Any) -> ScheduleReport:
        """Create a schedule, which creates jobs at the times of a cron expression.

        Args:
          name: Name of the schedule.
          cron: `0 7 * * 1` is every Monday at 7.
          timezone: Time zone of `cron`, such as `Europe/Berlin`.
          job: `evaluators`, `dataset`, … as in `jobs.create`.

        Raises:
          NameTaken: there is already a schedule of that name.
          NotFound: there is no such evaluator, data set or secret.
          InvalidRequest: a field is not valid; `problems` says why.
        """
        body = {"name": name, "cron": cron, "timezone": timezone, "job": job_body(**job)}
        return await self._transport.send(Call("POST", "/v1/schedules", ScheduleReport, encode(body)))

    @verb
    async def update(
        self, name: str, *, paused: bool | None = None, cron: str | None = None, timezone: str | None = None
    ) -> ScheduleReport:
        """Pause, resume or change a schedule, and return it; None leaves a field unchanged.

        Args:
          name: Name of the schedule.
          paused: Whether to pause the schedule, so that it does not create jobs.
          cron: Another expression.
          timezone: Another time zone.

        Raises:
          InvalidRequest: a field is not valid.
        """
        body = encode({"paused": paused, "cron": cron, "timezone": timezone})
        return await self._transport.send(Call("PATCH", self._path(name), ScheduleReport, body))

    @verb
    async def run(self, name: str) -> JobReport:
        """Create a job of a schedule now, and return the job."""
        return await self._transport.send(Call("POST", self._path(name, "run"), JobReport))


class AlertVerbs(NamedVerbs[TransportT, AlertReport]):
    """Methods for the alerts in your key's workspace. Each alert lists its last messages."""

    _PATH = "/v1/alerts"
    _REPORT = AlertReport

    @verb
    async def create(self, name: str, rule: AlertRule) -> AlertReport:
        """Create an alert, which sends a message when a metric goes out of bounds.

        The message also goes to a webhook, if the rule names one.

        Args:
          name: Name of the alert.
          rule: The metric to watch, its bound, and a webhook or None.

        Raises:
          NameTaken: there is already an alert of that name.
          NotFound: there is no such job, schedule, evaluator or secret.
          InvalidRequest: a field is not valid; `problems` says why.
        """
        return await self._transport.send(
            Call("POST", "/v1/alerts", AlertReport, encode({"name": name, **asdict(rule)}))
        )

    @verb
    async def update(self, name: str, *, paused: bool | None = None, acknowledged: bool | None = None) -> AlertReport:
        """Pause, resume or acknowledge an alert, and return it; None leaves a field unchanged.

        Args:
          name: Name of the alert.
          paused: Whether to pause the alert, so that it watches nothing.
          acknowledged: Whether somebody has seen the alert. The workbench then counts it again only after its next
            message.
        """
        body = encode({"paused": paused, "acknowledged": acknowledged})
        return await self._transport.send(Call("PATCH", self._path(name), AlertReport, body))

    @verb
    async def test(self, name: str) -> AlertReport:
        """Send a test message; the newest delivery in the result says whether the message arrived."""
        return await self._transport.send(Call("POST", self._path(name, "test"), AlertReport))
