"""Watches metrics of jobs and live traces. If a metric, such as a mean score, goes out of bounds, sends a message.

An alert is one object in the store, with its state and its messages. A host changes an alert only if no other host has
changed the alert since it was read (`swap_object`). So only one of several hosts adds a message, and only one host
sends it. If a host dies while it sends a message, the message is sent again: a receiver may get it twice, with the same
id.
"""

import asyncio
import base64
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import SplitResult

import httpx

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.lookups import TENANT_NAMES, LookupFailed, Lookups, written_address
from evaluator_host.engine.system.turns import TasksInTurns, Turns
from evaluator_host.platform.jobs.service import JobService
from evaluator_host.platform.models.access import PORTS, is_listed, make_http_client, proxy_for, require_url
from evaluator_host.platform.models.gateway.hosts import reachable
from evaluator_host.platform.store.objects import Objects, StoredObject
from evaluator_host.platform.store.secrets import Secrets
from evaluator_host.types.alerts import AlertReport, AlertRule, DeliveryReport, Metric
from evaluator_host.types.bounds import exceeds
from evaluator_host.types.errors import HostError, InvalidRequest, NotFound, StoreUnavailable
from evaluator_host.types.jobs import JobReport, JobScore, JobStatus
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.numbers import exact, rounded_beside
from evaluator_host.types.warnings import threshold_notes

KIND: Final = "alert"
PUBLIC: Final = "public"  # word in EVALUATOR_HOST_WEBHOOK_HOSTS for every host whose addresses are public
_MOST: Final = 100  # maximum number of alerts in a workspace
_LOOK_EVERY_S: Final = 5.0
_JOBS_AT_ONCE: Final = 100
_KEPT: Final = 20  # number of sent messages to keep: the newest are kept
_WAITING: Final = 100  # maximum number of messages to keep, sent or not
_WAITS_S: Final = (10, 60, 300, 1800, 7200)  # seconds to wait after each failed attempt to send a message
_SEND_S: Final = 10.0
_NOT_SENT: Final = "the host stopped before it sent the message"
# a missed run counts from the time for which it was scheduled, which may be just before the alert was created
_RUN_OVERLAP: Final = timedelta(seconds=_LOOK_EVERY_S)
# jobs of the last minute are read again, because a job is stored a moment after it has ended
_OVERLAP: Final = timedelta(minutes=1)
_AT_ONCE: Final = 8
# host names that always mean this machine (RFC 6761)
_LOCALHOST: Final = re.compile(r"(?:.+\.)?localhost\.?", re.IGNORECASE)

_log = logging.getLogger(__name__)
_refused = partial(InvalidRequest.of, what="alert")


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A message to send. `next_at` is the time of the next attempt, or None if there will be no further attempt."""

    id: str
    type: str
    body: str
    created_at: datetime
    next_at: datetime | None
    attempts: int = 0
    sent: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Alert:
    rule: AlertRule
    since: datetime  # jobs that ended earlier are not checked
    seen_at: datetime | None = None  # time at which the newest checked job ended
    # what `_end` returned for the last jobs that were checked; only their ids if an older version stored the alert
    seen: tuple[str, ...] = ()
    missed_at: datetime | None = None  # time of the newest run of the schedule that created no job
    paused: bool = False
    firing: bool = False
    acknowledged: bool = False
    value: float | None = None
    checked_at: datetime | None = None
    deliveries: tuple[_Delivery, ...] = ()
    unsent: int = 0  # number of messages that were dropped before they were sent


_STORED: Final = Adapter(_Alert)


@dataclass(frozen=True, slots=True)
class _Sample:
    """The current value of the metric that an alert watches, and what a message about it contains.

    `out` is true if the metric is out of bounds or doubtful, or no row could be scored, and None if too few rows have a
    result.
    """

    out: bool | None
    value: float | None
    about: dict[str, Any]


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
        secret_store: Secrets,
        settings: Settings,
        *,
        live: Callable[[], LiveScores | None],
        schedules: Callable[[], MissedRuns | None],
        names: Lookups = TENANT_NAMES,
    ) -> None:
        self._objects = objects
        self._jobs = jobs
        self._live = live
        self._schedules = schedules
        self._secrets = secret_store
        self._settings = settings
        self._names = names  # looks up the addresses of webhooks' hosts
        self._tests = Turns(_AT_ONCE, per_free=1)  # test messages under way
        self._wake = asyncio.Event()
        # for each alert id: the stored alert at the last check of all alerts, and its decoded content
        self._decoded: dict[str, tuple[StoredObject, _Alert]] = {}
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
        made = _Alert(rule, await self._objects.now())
        stored = await self._objects.add_object(KIND, workspace_id, name, _json(made), most=_MOST)
        self._wake.set()
        return _report(stored)

    async def list_alerts(self, workspace_id: str) -> list[AlertReport]:
        """Return the alerts of a workspace, sorted by name."""
        found = await self._objects.list_objects(KIND, workspace_id)
        return await asyncio.to_thread(lambda: [_report(one) for one in found])

    async def get_alert(self, workspace_id: str, name: str) -> AlertReport:
        return _report(await self._objects.get_object(KIND, workspace_id, name))

    async def change_alert(
        self, workspace_id: str, name: str, *, paused: bool | None = None, acknowledged: bool | None = None
    ) -> AlertReport:
        """Pause, resume or acknowledge an alert, and return it. None leaves a field unchanged.

        Jobs that ended during a pause are never checked. A pause also acknowledges the alert, until its next message.
        """
        now = await self._objects.now()

        def changed(kept: _Alert) -> _Alert:
            seen = kept.acknowledged if acknowledged is None else acknowledged
            if paused is None:
                return replace(kept, acknowledged=seen)
            return replace(kept, acknowledged=seen or paused, paused=paused, since=now)

        return _report(await self._change(workspace_id, name, changed))

    async def test_alert(self, workspace_id: str, name: str) -> AlertReport:
        """Send an `alert.test` message, and return the alert; the newest of its deliveries says whether it arrived."""
        text = f"alert {name}: this is a test"
        stored = await self._change(
            workspace_id, name, lambda kept: _with_message(kept, name, "alert.test", {"text": text})
        )
        newest = _STORED.read_json(stored.content).deliveries[0]
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
        self._decoded = known | await asyncio.to_thread(
            lambda: {one.id: (one, _STORED.read_json(one.content)) for one in new}
        )

    def _alert_of(self, stored: StoredObject) -> _Alert:
        known, alert = self._decoded.get(stored.id, (None, None))
        return alert if known is stored and alert is not None else _STORED.read_json(stored.content)

    async def look(self, stored: StoredObject) -> None:
        """Check the metric that a stored alert watches, and store the alert's new state and messages."""
        kept = self._alert_of(stored)
        if kept.paused:
            return
        new = await self._looked(stored, kept)
        if new == kept or not await self._objects.swap_object(stored, _json(new)):
            return
        if dropped := new.unsent - kept.unsent:
            _log.warning(
                "alert %s: dropped %d messages before they were sent, because %d are waiting",
                stored.name,
                dropped,
                _WAITING,
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

    async def _looked(self, stored: StoredObject, kept: _Alert) -> _Alert:
        rule = kept.rule
        if rule.live is not None:
            since = datetime.now(UTC) - timedelta(minutes=rule.window_minutes)
            if (live := self._live()) is None:
                return kept
            statistics = await live.live_statistics(stored.workspace_id, rule.live, since=since)
            sample = _sample(rule, statistics, {"live": rule.live, "window_minutes": rule.window_minutes})
            return kept if sample is None else _told(kept, stored.name, sample, each=False)
        for job in await self._ended_jobs(stored.workspace_id, kept):
            samples = []
            for score in job.scores:
                if rule.evaluator in (None, score.evaluator, score.evaluator.partition("@")[0]):
                    about = {"job": job.id, "job_name": job.name, "status": job.status, "schedule": job.schedule}
                    about |= {"dataset": job.dataset_name, "evaluator": score.evaluator}
                    samples.append(_sample(rule, score, about))
            known = [one for one in samples if one is not None]
            out = [one for one in known if one.out]
            # an alert stops firing only when all evaluators are within bounds, except those that skipped all rows
            within = [] if any(one.out is None and one.about["failed"] for one in known) else known
            for sample in out or within:
                kept = _told(kept, stored.name, sample, each=True)
            assert job.finished_at is not None  # noqa: S101 - it has ended
            seen_at = max(kept.seen_at or kept.since, job.finished_at)
            seen = (*kept.seen, _end(job))[-_JOBS_AT_ONCE:]
            ended_for_good = rule.job is not None and job.status is not JobStatus.FAILED
            kept = replace(kept, seen_at=seen_at, seen=seen, paused=ended_for_good)
        return await self._missed(stored, kept)

    async def _missed(self, stored: StoredObject, kept: _Alert) -> _Alert:
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
                sample = _Sample(out=True, value=None, about={"schedule": rule.schedule, "text": text})
                return _told(replace(kept, missed_at=run[0]), stored.name, sample, each=True)
        return kept

    async def _ended_jobs(self, workspace_id: str, kept: _Alert) -> Sequence[JobReport]:
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
        new = [job for job in jobs if job.status.final and not {job.id, _end(job)} & {*kept.seen}]
        return sorted(new, key=lambda job: job.finished_at or job.created_at)

    async def _send_message(self, stored: StoredObject, message: _Delivery) -> bool:
        """Claim a message and send it. Return whether the next message may be sent to the same receiver."""
        wait = _WAITS_S[message.attempts] if message.attempts < len(_WAITS_S) else None
        next_at = None if wait is None else datetime.now(UTC) + timedelta(seconds=wait)
        claimed = replace(message, attempts=message.attempts + 1, next_at=next_at, error=_NOT_SENT)
        fresh = await self._objects.get_object(KIND, stored.workspace_id, stored.name)
        before = _STORED.read_json(fresh.content)
        claim = _json(_put(before, claimed))
        if message not in before.deliveries or not await self._objects.swap_object(fresh, claim):
            return True  # another host has claimed the message and is sending it
        error = await self._send(stored.workspace_id, before.rule, str(before.rule.url), claimed)
        sent = replace(claimed, sent=error is None, error=error, next_at=None if error is None else next_at)
        with suppress(NotFound):
            await self._change(stored.workspace_id, stored.name, partial(_put, delivery=sent))
        return error is None

    async def _change(self, workspace_id: str, name: str, change: Callable[[_Alert], _Alert]) -> StoredObject:
        def changed(content: str) -> str:
            return _json(change(_STORED.read_json(content)))

        return await self._objects.change_object(KIND, workspace_id, name, changed)

    async def _send(self, workspace_id: str, rule: AlertRule, to: str, message: _Delivery) -> str | None:
        """Try once to send a message; return why it failed, or None if the receiver accepted it."""
        try:
            headers = {"Content-Type": "application/json", "User-Agent": "evaluator-host"}
            headers |= await self._signature(workspace_id, rule, message)
            parts = self._require_form(to)
            host, port = httpx.URL(to).host, parts.port or PORTS[parts.scheme]
            dial = partial(self._dial, workspace=workspace_id, listed=is_listed(parts, self._settings.webhook_hosts))
            async with asyncio.timeout(2 * _SEND_S):
                # if there is a proxy, the address is checked here, since a proxy does not check it
                if proxy_for(self._settings, host) is not None:
                    await dial(host, port)
                client = make_http_client(self._settings, to, timeout_s=_SEND_S, at_once=1, dial=dial)
                async with client:
                    request = client.build_request("POST", to, content=message.body, headers=headers)
                    answer = await client.send(request, stream=True)
                    await answer.aclose()
        except (
            HostError,
            httpx.HTTPError,
            LookupFailed,
            OSError,
        ) as error:  # `OSError` also catches `TimeoutError`
            return f"{type(error).__name__}: {getattr(error, 'detail', error)}"[:300]
        return None if answer.is_success else f"the webhook answered {answer.status_code}"

    async def _signature(self, workspace_id: str, rule: AlertRule, message: _Delivery) -> dict[str, str]:
        """Sign a message as standardwebhooks.com describes. Return the HTTP headers that contain the signature."""
        at = str(int(datetime.now(UTC).timestamp()))
        headers = {"webhook-id": message.id, "webhook-timestamp": at}
        if rule.secret is None:
            return headers
        raw = _signing_key(await self._secrets.reveal(workspace_id, rule.secret))
        digest = hmac.digest(raw, f"{message.id}.{at}.{message.body}".encode(), hashlib.sha256)
        return {**headers, "webhook-signature": f"v1,{base64.b64encode(digest).decode()}"}

    def _require_form(self, given: str) -> SplitResult:
        """Check a webhook's URL without looking up its host name, and return the parts of the URL.

        Raises:
          InvalidRequest: the URL is not valid, or the operator does not allow the host.
        """
        parts = require_url(given, field="url", path_only=False)
        host, allowed = httpx.URL(given).host, self._settings.webhook_hosts
        if is_listed(parts, allowed):
            return parts
        address = "127.0.0.1" if _LOCALHOST.fullmatch(host) else written_address(host)
        if PUBLIC not in allowed or (address is not None and not reachable([address], ())):
            raise _not_allowed(host)
        return parts

    async def _dial(self, host: str, port: int, *, workspace: str, listed: bool) -> list[str]:
        """Return the addresses at which a webhook may be called: only public ones, unless its host is `listed`.

        Raises:
          LookupFailed: the host has no address, or has no public address and is not listed by the operator.
        """
        found = await self._names.look_up(host, port, workspace=workspace)
        if listed:
            return found
        if not (public := reachable(found, ())):
            raise LookupFailed(_not_allowed(host).detail)
        return public

    async def _require(self, workspace_id: str, rule: AlertRule) -> None:
        """Check a rule, and that the job, schedule or evaluator that it watches exists."""
        if sum(one is not None for one in (rule.job, rule.schedule, rule.live)) != 1:
            raise _refused(
                "job", "an alert watches a job, a schedule or live traces", "give exactly one of job, schedule and live"
            )
        if (rule.below is None) == (rule.above is None):
            raise _refused("below", "an alert needs exactly one bound", "give either below or above")
        _require_rate(rule)
        if rule.job is not None:
            await self._jobs.get_job(workspace_id, rule.job)
        elif rule.schedule is not None:
            if (schedules := self._schedules()) is None:
                raise _refused("schedule", "this host has no schedules", "watch a job instead")
            await schedules.require_schedule(workspace_id, rule.schedule)
        else:
            if (live := self._live()) is None:
                raise _refused("live", "this host does not receive live traces", "watch a job instead")
            await live.require_evaluator(workspace_id, str(rule.live))
        if rule.secret is not None:
            _signing_key(await self._secrets.reveal(workspace_id, rule.secret))
        if rule.url is not None:
            # this checks only the form of the URL; the host name is looked up for each message
            self._require_form(rule.url)


async def _unless_gone(work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` on an alert. Ignore the error if the alert was deleted or the database does not answer.

    Other errors are logged, because an error of one alert must not end the work on others.
    """
    try:
        with suppress(NotFound, StoreUnavailable):
            await work()
    except HostError as error:
        _log.warning("an alert cannot be checked: %s", error.detail)


def _not_allowed(host: str) -> InvalidRequest:
    hint = f'the operator can allow it with EVALUATOR_HOST_WEBHOOK_HOSTS=\'["public", "{host}"]\''
    return _refused("url", f"alerts may not call {host}", hint)


def _signing_key(secret: str) -> bytes:
    """Return the signing key that a secret contains.

    Raises:
      InvalidRequest: the secret begins with `whsec_`, but the rest is not base64.
    """
    try:
        return base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    except ValueError as error:
        raise _refused(
            "secret", "the text after whsec_ is not base64", "copy the whole secret again, as the receiver shows it"
        ) from error


def _end(job: JobReport) -> str:
    """Return a string that identifies the latest end of a job, because a resumed job ends again."""
    return f"{job.id} {job.finished_at}"


def _told(kept: _Alert, name: str, sample: _Sample, *, each: bool) -> _Alert:
    """Return the alert with its state after this check. If the alert starts or stops firing, add a message.

    With `each`, every check that finds the metric out of bounds adds a message, even if the alert is already firing.
    """
    if sample.out is None:
        return kept
    seen = kept.acknowledged and sample.out and not each
    new = replace(kept, firing=sample.out, acknowledged=seen, value=sample.value, checked_at=datetime.now(UTC))
    if sample.out and (each or not kept.firing):
        return _with_message(new, name, "alert.firing", sample.about)
    if not sample.out and kept.firing:
        return _with_message(new, name, "alert.resolved", sample.about)
    return new if (new.firing, new.value) != (kept.firing, kept.value) or each else kept


def _with_message(kept: _Alert, name: str, type_: str, about: dict[str, Any]) -> _Alert:
    now = datetime.now(UTC)
    rule = kept.rule
    bounds = {"metric": rule.metric, "below": rule.below, "above": rule.above, "value": kept.value}
    text = about.get("text") or _sentence(name, type_, kept, about)
    body = {"type": type_, "alert": name, "timestamp": now.isoformat(), **bounds, **about, "text": text}
    made = _Delivery(f"msg_{secrets.token_hex(12)}", type_, encode_json(body).decode(), now, now if rule.url else None)
    every = [made, *kept.deliveries]
    wanted = [one for place, one in enumerate(every) if place < _KEPT or one.next_at is not None]
    unsent = kept.unsent + sum(one.next_at is not None for one in wanted[_WAITING:])
    return replace(kept, deliveries=tuple(wanted[:_WAITING]), unsent=unsent)


def _sentence(name: str, type_: str, kept: _Alert, about: dict[str, Any]) -> str:
    rule = kept.rule
    watched = rule.metric.replace("_", " ")
    limit = rule.below if rule.below is not None else rule.above or 0.0
    bound = f"{'over' if rule.below is None else 'under'} {exact(limit)}"
    where = f"job {about.get('job_name') or about['job']}" if "job" in about else f"live traces of {about['live']}"
    if about.get("status") == JobStatus.FAILED:
        return f"alert {name}: {where} failed"
    is_out = bound if type_ == "alert.firing" else f"no longer {bound}"
    counts = f"{about['scored']} of {about['rows']} rows scored, {about['failed']} failed"
    if rule.metric is not Metric.FAILURE_RATE and about["counted"] not in (0, about["scored"]):
        counts += f", {about['counted']} counted"
    evaluator = about.get("evaluator", rule.live)
    if kept.value is None:
        return f"alert {name}: {evaluator} has no {watched} in {where}, because no row could be scored ({counts})"
    if doubt := about.get("doubt"):
        return f"alert {name}: the {watched} of {evaluator} in {where} cannot be relied on: {doubt} ({counts})"
    value = rounded_beside(kept.value, limit)
    return f"alert {name}: the {watched} of {evaluator} is {value}, {is_out}, in {where} ({counts})"


def _sample(rule: AlertRule, score: JobScore, about: dict[str, Any]) -> _Sample | None:
    """Return the metric that a rule watches. Return None if no scored row has a value for it.

    A pass rate, for example, needs rows with a verdict. Doubtful scores are never within bounds.
    """
    done = score.scored + score.failed
    metrics = {
        Metric.MEAN: (score.mean, score.mean_rows),
        Metric.PASS_RATE: (score.pass_rate, score.judged),
        Metric.FAILURE_RATE: (score.failed / done if done else None, done),
    }
    value, counted_rows = metrics[rule.metric]
    enough = counted_rows >= rule.min_rows
    about |= {"rows": score.rows, "scored": score.scored, "failed": score.failed, "counted": counted_rows}
    if about.get("status") == JobStatus.FAILED:
        return _Sample(out=True, value=value if enough else None, about=about)
    if done < rule.min_rows or (value is not None and not enough):
        return _Sample(None, None, about)
    if value is None:
        return None if score.scored or not score.failed else _Sample(out=True, value=None, about=about)
    if score.doubt is not None and rule.metric is not Metric.FAILURE_RATE:
        return _Sample(out=True, value=value, about={**about, "doubt": score.doubt})
    out = exceeds(rule.below, value) if rule.below is not None else exceeds(value, rule.above or 0.0)
    return _Sample(out, value, about)


def _put(kept: _Alert, delivery: _Delivery) -> _Alert:
    return replace(kept, deliveries=tuple(delivery if one.id == delivery.id else one for one in kept.deliveries))


def _json(kept: _Alert) -> str:
    return _STORED.json(kept)


def _report(stored: StoredObject) -> AlertReport:
    kept = _STORED.read_json(stored.content)
    ended = "failed" if kept.rule.url is not None else "shown"
    told = [(one, decode_json(one.body.encode())) for one in kept.deliveries]
    return AlertReport(
        name=stored.name,
        rule=kept.rule,
        paused=kept.paused,
        firing=kept.firing,
        acknowledged=kept.acknowledged,
        value=kept.value,
        checked_at=kept.checked_at,
        deliveries=tuple(
            DeliveryReport(
                id=one.id,
                type=one.type,
                text=body["text"],
                job=body.get("job"),
                created_at=one.created_at,
                attempts=one.attempts,
                status="sent" if one.sent else "waiting" if one.next_at is not None else ended,
                error=None if one.sent or not one.attempts else one.error,
            )
            for one, body in told
        ),
        unsent=kept.unsent,
        created_at=stored.created_at,
    )


def _require_rate(rule: AlertRule) -> None:
    """Check that the bound of a rate is between 0 and 1."""
    if rule.metric is Metric.MEAN:
        return
    field, bound = ("above", rule.above) if rule.below is None else ("below", rule.below)
    for note in threshold_notes(bound):
        raise _refused(field, f"{rule.metric} is always between 0 and 1, but the bound is {bound:g}", str(note.remedy))
