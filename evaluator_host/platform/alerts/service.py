"""Watches metrics of jobs and live traces. If a metric, such as a mean score, goes out of bounds, sends a message.

An alert is one object in the store, with its state and its messages. A host changes an alert only if no other host has
changed the alert since it was read (`swap_object`). So only one of several hosts adds a message, and only one host
sends it. If a host dies while it sends a message, the message is sent again: a receiver may get it twice, with the same
id.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol, runtime_checkable

import httpx

from evaluator_host.engine.system.turns import TasksInTurns, Turns
from evaluator_host.platform.alerts.alert import (
    WAITING,
    Alert,
    Delivery,
    Sample,
    as_json,
    end_of,
    put,
    read_alert,
    report_of,
    sample_of,
    told,
    with_message,
)
from evaluator_host.platform.alerts.webhooks import Webhooks, refused
from evaluator_host.platform.jobs.service import JobService
from evaluator_host.platform.store.objects import Objects, StoredObject
from evaluator_host.types.alerts import AlertReport, AlertRule, Metric
from evaluator_host.types.errors import HostError, NotFound, StoreUnavailable
from evaluator_host.types.jobs import JobReport, JobScore, JobStatus
from evaluator_host.types.warnings import threshold_notes

KIND: Final = "alert"
_MOST: Final = 100  # maximum number of alerts in a workspace
_LOOK_EVERY_S: Final = 5.0
_JOBS_AT_ONCE: Final = 100
_WAITS_S: Final = (10, 60, 300, 1800, 7200)  # seconds to wait after each failed attempt to send a message
_NOT_SENT: Final = "the host stopped before it sent the message"
# a missed run counts from the time for which it was scheduled, which may be just before the alert was created
_RUN_OVERLAP: Final = timedelta(seconds=_LOOK_EVERY_S)
# jobs of the last minute are read again, because a job is stored a moment after it has ended
_OVERLAP: Final = timedelta(minutes=1)
_AT_ONCE: Final = 8

_log = logging.getLogger(__name__)


@runtime_checkable
class LiveScores(Protocol):
    """Interface through which alerts read the scores of live traces."""

    async def require_evaluator(self, workspace_id: str, name: str) -> None:
        """Check that there is an evaluator with this name; raise `NotFound` if there is not."""
        ...

    async def live_statistics(self, workspace_id: str, name: str, *, since: datetime) -> JobScore:
        """Return an evaluator's row counts, mean score and pass rate for the live traces that arrived after `since`."""
        ...


@runtime_checkable
class MissedRuns(Protocol):
    """Interface through which alerts find the runs of schedules that did not create a job."""

    async def require_schedule(self, workspace_id: str, name: str) -> None:
        """Check that there is a schedule with this name; raise `NotFound` if there is not."""
        ...

    async def missed_run(self, workspace_id: str, name: str) -> tuple[datetime, str] | None:
        """If the last run did not create a job, return when the run was due and why. Otherwise return None.

        Raises:
          NotFound: there is no schedule with that name.
        """
        ...


class Alerts:
    """The alerts of one host.

    Every method for an existing alert raises `NotFound` if there is no alert with that name.
    """

    def __init__(
        self,
        objects: Objects,
        jobs: JobService,
        webhooks: Webhooks,
        *,
        live: Callable[[], LiveScores | None],
        schedules: Callable[[], MissedRuns | None],
    ) -> None:
        self._objects = objects
        self._jobs = jobs
        self._live = live
        self._schedules = schedules
        self._webhooks = webhooks
        self._tests = Turns(_AT_ONCE, per_free=1)  # test messages under way
        self._wake = asyncio.Event()
        # for each alert id: the stored alert at the last check of all alerts, and its decoded content
        self._decoded: dict[str, tuple[StoredObject, Alert]] = {}
        # for each receiver that a message did not reach: the time of the next attempt
        self._resting: dict[tuple[str, str], float] = {}

    async def add_alert(self, workspace_id: str, name: str, rule: AlertRule) -> AlertReport:
        """Store an alert, and return it.

        The alert watches jobs that end from now on. If the rule names a single job, this job may already have ended.

        Raises:
          InvalidRequest: the name or the rule is not valid, or the webhook may not be called.
          NotFound: there is no such job, schedule, evaluator or secret.
          NameTaken: there is an alert with that name.
          InUse: the workspace has too many alerts.
        """
        await self._require(workspace_id, rule)
        made = Alert(rule, await self._objects.now())
        stored = await self._objects.add_object(KIND, workspace_id, name, as_json(made), most=_MOST)
        self._wake.set()
        return report_of(stored)

    async def list_alerts(self, workspace_id: str) -> list[AlertReport]:
        """Return the alerts of a workspace, sorted by name."""
        found = await self._objects.list_objects(KIND, workspace_id)
        return await asyncio.to_thread(lambda: [report_of(one) for one in found])

    async def get_alert(self, workspace_id: str, name: str) -> AlertReport:
        return report_of(await self._objects.get_object(KIND, workspace_id, name))

    async def change_alert(
        self, workspace_id: str, name: str, *, paused: bool | None = None, acknowledged: bool | None = None
    ) -> AlertReport:
        """Pause, resume or acknowledge an alert, and return it. None leaves a field unchanged.

        Jobs that ended during a pause are never checked. A pause also acknowledges the alert, until its next message.
        """
        now = await self._objects.now()

        def changed(kept: Alert) -> Alert:
            seen = kept.acknowledged if acknowledged is None else acknowledged
            if paused is None:
                return replace(kept, acknowledged=seen)
            return replace(kept, acknowledged=seen or paused, paused=paused, since=now)

        return report_of(await self._change(workspace_id, name, changed))

    async def test_alert(self, workspace_id: str, name: str) -> AlertReport:
        """Send an `alert.test` message, and return the alert; the newest of its deliveries says whether it arrived."""
        text = f"alert {name}: this is a test"
        stored = await self._change(
            workspace_id, name, lambda kept: with_message(kept, name, "alert.test", {"text": text})
        )
        newest = read_alert(stored.content).deliveries[0]
        if newest.next_at is not None:
            async with self._tests.turn(workspace_id):
                await self._send_message(stored, newest)
        return await self.get_alert(workspace_id, name)

    async def delete_alert(self, workspace_id: str, name: str) -> None:
        await self._objects.delete_object(KIND, workspace_id, name)

    async def run(self) -> None:
        """Check the metrics of all alerts and send messages, until cancelled; a slow webhook does not delay others."""
        async with asyncio.TaskGroup() as tasks:
            looks, sends = TasksInTurns(tasks, _AT_ONCE), TasksInTurns(tasks, _AT_ONCE)
            while True:
                try:
                    every = await self._objects.list_every(KIND)
                    await self._decode(every)
                    for stored in every:
                        look = partial(_unless_gone, partial(self.look, stored))
                        looks.begin(stored.workspace_id, (stored.id,), look)
                    for key, alerts in self.due(every).items():
                        sends.begin(key[0], key, partial(_unless_gone, partial(self.send, key, alerts)))
                except StoreUnavailable as error:
                    _log.warning("alerts cannot be checked: %s", error)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _LOOK_EVERY_S)
                self._wake.clear()

    async def _decode(self, every: Sequence[StoredObject]) -> None:
        """Decode the alerts that have changed since the last check. Use a thread: an alert may have 100 messages."""
        known = {one.id: found for one in every if (found := self._decoded.get(one.id)) and found[0] is one}
        new = [one for one in every if one.id not in known]
        self._decoded = known | await asyncio.to_thread(lambda: {one.id: (one, read_alert(one.content)) for one in new})

    def _alert_of(self, stored: StoredObject) -> Alert:
        known, alert = self._decoded.get(stored.id, (None, None))
        return alert if known is stored and alert is not None else read_alert(stored.content)

    async def look(self, stored: StoredObject) -> None:
        """Check the metric that a stored alert watches, and store the alert's new state and messages."""
        kept = self._alert_of(stored)
        if kept.paused:
            return
        new = await self._looked(stored, kept)
        if new == kept or not await self._objects.swap_object(stored, as_json(new)):
            return
        if dropped := new.unsent - kept.unsent:
            _log.warning(
                "alert %s: dropped %d messages before they were sent, because %d are waiting",
                stored.name,
                dropped,
                WAITING,
            )
        if new.deliveries != kept.deliveries:
            self._wake.set()

    def due(self, every: Sequence[StoredObject]) -> dict[tuple[str, str], list[StoredObject]]:
        """Return the alerts with messages to send, keyed by workspace and receiver.

        Leave out receivers that just failed.
        """
        now, by_receiver = datetime.now(UTC), dict[tuple[str, str], list[StoredObject]]()
        self._resting = {key: until for key, until in self._resting.items() if until > time.monotonic()}
        for stored in every:
            kept = self._alert_of(stored)
            key = (stored.workspace_id, httpx.URL(kept.rule.url or "").netloc.decode())
            if key not in self._resting and any(one.next_at and one.next_at <= now for one in kept.deliveries):
                by_receiver.setdefault(key, []).append(stored)
        return by_receiver

    async def send(self, receiver: tuple[str, str], alerts: Sequence[StoredObject]) -> None:
        """Send the messages for one receiver, oldest first. After a failure, wait before the next message."""
        now = datetime.now(UTC)
        messages = [(one, stored) for stored in alerts for one in self._alert_of(stored).deliveries]
        due = [(one, stored) for one, stored in messages if one.next_at is not None and one.next_at <= now]
        for one, stored in sorted(due, key=lambda pair: pair[0].created_at):
            with suppress(NotFound):  # raised if the alert was deleted
                if not await self._send_message(stored, one):
                    self._resting[receiver] = time.monotonic() + _WAITS_S[0]
                    return

    async def _looked(self, stored: StoredObject, kept: Alert) -> Alert:
        rule = kept.rule
        if rule.live is not None:
            since = datetime.now(UTC) - timedelta(minutes=rule.window_minutes)
            if (live := self._live()) is None:
                return kept
            statistics = await live.live_statistics(stored.workspace_id, rule.live, since=since)
            sample = sample_of(rule, statistics, {"live": rule.live, "window_minutes": rule.window_minutes})
            return kept if sample is None else told(kept, stored.name, sample, each=False)
        for job in await self._ended_jobs(stored.workspace_id, kept):
            samples = []
            for score in job.scores:
                if rule.evaluator in (None, score.evaluator, score.evaluator.partition("@")[0]):
                    about = {"job": job.id, "job_name": job.name, "status": job.status, "schedule": job.schedule}
                    about |= {"dataset": job.dataset_name, "evaluator": score.evaluator}
                    samples.append(sample_of(rule, score, about))
            known = [one for one in samples if one is not None]
            out = [one for one in known if one.out]
            # an alert stops firing only when all evaluators are within bounds, except those that skipped all rows
            within = [] if any(one.out is None and one.about["failed"] for one in known) else known
            for sample in out or within:
                kept = told(kept, stored.name, sample, each=True)
            assert job.finished_at is not None  # noqa: S101 - it has ended
            seen_at = max(kept.seen_at or kept.since, job.finished_at)
            seen = (*kept.seen, end_of(job))[-_JOBS_AT_ONCE:]
            ended_for_good = rule.job is not None and job.status is not JobStatus.FAILED
            kept = replace(kept, seen_at=seen_at, seen=seen, paused=ended_for_good)
        return await self._missed(stored, kept)

    async def _missed(self, stored: StoredObject, kept: Alert) -> Alert:
        """Return the alert, with a new message if the last run of its schedule did not create a job.

        No message is added if the alert already has a message about this run.
        """
        rule = kept.rule
        if rule.schedule is None or (schedules := self._schedules()) is None:
            return kept
        with suppress(NotFound):  # raised if the schedule was deleted
            run = await schedules.missed_run(stored.workspace_id, rule.schedule)
            if run is not None and run[0] != kept.missed_at and run[0] > kept.since - _RUN_OVERLAP:
                text = f"alert {stored.name}: schedule {rule.schedule} did not create a job: {run[1]}"
                sample = Sample(out=True, value=None, about={"schedule": rule.schedule, "text": text})
                return told(replace(kept, missed_at=run[0]), stored.name, sample, each=True)
        return kept

    async def _ended_jobs(self, workspace_id: str, kept: Alert) -> Sequence[JobReport]:
        """Return the jobs that ended since the last check, the oldest first. A resumed job ends more than once."""
        jobs: list[JobReport] = []
        if kept.rule.job is not None:
            with suppress(NotFound):
                jobs = [await self._jobs.get_job(workspace_id, kept.rule.job)]
        else:
            after = max(kept.since, (kept.seen_at or kept.since) - _OVERLAP)
            jobs = await self._jobs.list_jobs(
                workspace_id, limit=_JOBS_AT_ONCE, schedule=kept.rule.schedule, finished_after=after
            )
        new = [job for job in jobs if job.status.final and not {job.id, end_of(job)} & {*kept.seen}]
        return sorted(new, key=lambda job: job.finished_at or job.created_at)

    async def _send_message(self, stored: StoredObject, message: Delivery) -> bool:
        """Claim a message and send it. Return whether the next message may be sent to the same receiver."""
        wait = _WAITS_S[message.attempts] if message.attempts < len(_WAITS_S) else None
        next_at = None if wait is None else datetime.now(UTC) + timedelta(seconds=wait)
        claimed = replace(message, attempts=message.attempts + 1, next_at=next_at, error=_NOT_SENT)
        fresh = await self._objects.get_object(KIND, stored.workspace_id, stored.name)
        before = read_alert(fresh.content)
        claim = as_json(put(before, claimed))
        if message not in before.deliveries or not await self._objects.swap_object(fresh, claim):
            return True  # another host has claimed the message and is sending it
        error = await self._webhooks.send(stored.workspace_id, before.rule, claimed)
        sent = replace(claimed, sent=error is None, error=error, next_at=None if error is None else next_at)
        with suppress(NotFound):
            await self._change(stored.workspace_id, stored.name, partial(put, delivery=sent))
        return error is None

    async def _change(self, workspace_id: str, name: str, change: Callable[[Alert], Alert]) -> StoredObject:
        def changed(content: str) -> str:
            return as_json(change(read_alert(content)))

        return await self._objects.change_object(KIND, workspace_id, name, changed)

    async def _require(self, workspace_id: str, rule: AlertRule) -> None:
        """Check a rule, and that the job, schedule or evaluator that it watches exists."""
        if sum(one is not None for one in (rule.job, rule.schedule, rule.live)) != 1:
            raise refused(
                "job", "an alert watches a job, a schedule or live traces", "give exactly one of job, schedule and live"
            )
        if (rule.below is None) == (rule.above is None):
            raise refused("below", "an alert needs exactly one bound", "give either below or above")
        _require_rate(rule)
        if rule.job is not None:
            await self._jobs.get_job(workspace_id, rule.job)
        elif rule.schedule is not None:
            if (schedules := self._schedules()) is None:
                raise refused("schedule", "this host has no schedules", "watch a job instead")
            await schedules.require_schedule(workspace_id, rule.schedule)
        else:
            if (live := self._live()) is None:
                raise refused("live", "this host does not receive live traces", "watch a job instead")
            await live.require_evaluator(workspace_id, str(rule.live))
        await self._webhooks.require_webhook(workspace_id, rule)


async def _unless_gone(work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` on an alert. Ignore the error if the alert was deleted or the database does not answer.

    Other errors are logged, because an error of one alert must not end the work on others.
    """
    try:
        with suppress(NotFound, StoreUnavailable):
            await work()
    except HostError as error:
        _log.warning("an alert cannot be checked: %s", error.detail)


def _require_rate(rule: AlertRule) -> None:
    """Check that the bound of a rate is between 0 and 1."""
    if rule.metric is Metric.MEAN:
        return
    field, bound = ("above", rule.above) if rule.below is None else ("below", rule.below)
    for note in threshold_notes(bound):
        raise refused(field, f"{rule.metric} is always between 0 and 1, but the bound is {bound:g}", str(note.remedy))
