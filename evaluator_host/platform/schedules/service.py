"""Creates jobs at the times of cron expressions. Each time gets one job, even if several hosts share the database.

The idempotency key of a job contains its time, so that a second host gets the same job. If several times passed while
no host was running, a job is created only for the latest of these times, and the other times count as missed.
"""

import asyncio
import itertools
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.engine.system.turns import TasksInTurns
from evaluator_host.platform.jobs.service import JobService
from evaluator_host.platform.jobs.spec import JobSpec, label_of
from evaluator_host.platform.store.objects import Objects, StoredObject
from evaluator_host.types.alerts import ScheduleReport
from evaluator_host.types.errors import HostError, InvalidRequest, NotFound, StoreUnavailable
from evaluator_host.types.jobs import JobReport

KIND: Final = "schedule"
_MOST: Final = 100  # maximum number of schedules in a workspace
_MOST_BYTES: Final = 256 << 10  # maximum number of bytes in a schedule's job, since each check reads it
_LOOK_EVERY_S: Final = 5.0
_AT_ONCE: Final = 8  # maximum number of schedules to check at the same time
_ALWAYS: Final = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
_MISSED_COUNTED: Final = 100  # maximum number of times to count after a stop; this takes 5 ms for each schedule
_SHOWN: Final = 3

_log = logging.getLogger(__name__)
_refused = partial(InvalidRequest.of, what="schedule")


@dataclass(frozen=True, slots=True)
class _Schedule:
    """A schedule in the form in which it is stored. `next_at` is None if the expression has no later time."""

    spec: JobSpec
    cron: str
    timezone: str
    next_at: datetime | None
    paused: bool = False
    last_at: datetime | None = None
    last_job: str | None = None
    last_error: str | None = None
    missed: int = 0
    missed_more: bool = False


_STORED: Final = Adapter(_Schedule)


class Schedules:
    """The schedules of one host.

    Every method for an existing schedule raises `NotFound` if there is no schedule with that name.
    """

    def __init__(self, objects: Objects, jobs: JobService) -> None:
        self._objects = objects
        self._jobs = jobs
        self._wake = asyncio.Event()
        # for each schedule id: a stored schedule that needs no check for some time, and when that time begins and ends
        self._waiting: dict[str, tuple[StoredObject, datetime, datetime]] = {}

    async def add_schedule(
        self, workspace_id: str, name: str, spec: JobSpec, *, cron: str, timezone: str = "UTC"
    ) -> ScheduleReport:
        """Store a schedule, and return it.

        Raises:
          InvalidRequest: the name, the expression, the time zone or the job is not valid.
          NotFound: there is no such evaluator or data set.
          NameTaken: there is a schedule with that name.
          InUse: the workspace has too many schedules.
        """
        first = next(iter(_times(cron, timezone, datetime.now(UTC))), None)
        if first is None:
            raise _refused(
                "cron",
                f"{cron!r} never matches a date; perhaps it names a day that does not exist, such as 31 February",
                "write a time that exists, such as '0 7 * * 1'",
            )
        await self._jobs.require_job(spec, workspace_id)
        made = _Schedule(spec, cron, timezone, first)
        if len(_json(made)) > _MOST_BYTES:
            message = f"the job of a schedule may take at most {_MOST_BYTES >> 10} KB"
            raise _refused(
                "job",
                message,
                "upload the rows as a data set and store the evaluators; then give their names in the job",
            )
        stored = await self._objects.add_object(KIND, workspace_id, name, _json(made), most=_MOST)
        self._wake.set()
        return _report(stored)

    async def list_schedules(self, workspace_id: str) -> list[ScheduleReport]:
        """Return the schedules of a workspace, sorted by name."""
        found = await self._objects.list_objects(KIND, workspace_id)
        return await asyncio.to_thread(lambda: [_report(one) for one in found])

    async def list_specs(self, workspace_id: str) -> dict[str, JobSpec]:
        """Return a dict from the name of each of a workspace's schedules to the job that the schedule creates."""
        found = await self._objects.list_objects(KIND, workspace_id)
        return await asyncio.to_thread(lambda: {one.name: _STORED.read_json(one.content).spec for one in found})

    async def get_schedule(self, workspace_id: str, name: str) -> ScheduleReport:
        return _report(await self._objects.get_object(KIND, workspace_id, name))

    async def require_schedule(self, workspace_id: str, name: str) -> None:
        """Check that there is a schedule with this name."""
        await self._objects.get_object(KIND, workspace_id, name)

    async def change_schedule(
        self,
        workspace_id: str,
        name: str,
        *,
        paused: bool | None = None,
        cron: str | None = None,
        timezone: str | None = None,
    ) -> ScheduleReport:
        """Pause, resume or change a schedule, and return it. None leaves a field unchanged.

        No job is created for the times during a pause.

        Raises:
          InvalidRequest: the expression or the time zone is not valid.
        """
        given: dict[str, Any] = {"paused": paused, "cron": cron, "timezone": timezone}

        def changed(content: str) -> str:
            new = replace(
                _STORED.read_json(content), **{key: value for key, value in given.items() if value is not None}
            )
            return _json(replace(new, next_at=next(iter(_times(new.cron, new.timezone, datetime.now(UTC))), None)))

        stored = await self._objects.change_object(KIND, workspace_id, name, changed)
        self._wake.set()
        return _report(stored)

    async def run_schedule(self, workspace_id: str, name: str) -> JobReport:
        """Create and return the job of a schedule now, in addition to the jobs at its times.

        Raises:
          NotFound: there is no schedule with that name, or its evaluator or data set was deleted.
        """
        stored, now = await self._objects.get_object(KIND, workspace_id, name), datetime.now(UTC)
        job = await self._jobs.create_job(_named(stored, _STORED.read_json(stored.content), now), workspace_id)

        def changed(content: str) -> str:
            return _json(replace(_STORED.read_json(content), last_at=now, last_job=job.id, last_error=None))

        await self._objects.change_object(KIND, workspace_id, name, changed)
        return job

    async def missed_run(self, workspace_id: str, name: str) -> tuple[datetime, str] | None:
        """If the last run did not create a job, return when the run was due and why; otherwise None."""
        kept = _STORED.read_json((await self._objects.get_object(KIND, workspace_id, name)).content)
        return None if kept.last_at is None or kept.last_error is None else (kept.last_at, kept.last_error)

    async def delete_schedule(self, workspace_id: str, name: str) -> None:
        """Delete a schedule; its jobs stay."""
        await self._objects.delete_object(KIND, workspace_id, name)

    async def run(self) -> None:
        """Create jobs at their times, until cancelled. Slow checks of one workspace's schedules do not delay others."""
        async with asyncio.TaskGroup() as tasks:
            looks = TasksInTurns(tasks, _AT_ONCE)
            while True:
                try:
                    every = await self._objects.list_every(KIND)
                    self._waiting = {one.id: self._waiting[one.id] for one in every if one.id in self._waiting}
                    now = datetime.now(UTC)
                    for stored in every:
                        if not self.waits(stored, now):
                            looks.begin(stored.workspace_id, (stored.id,), partial(self.look_now, stored))
                except StoreUnavailable as error:
                    _log.warning("schedules cannot be checked: %s", error.detail)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _LOOK_EVERY_S)
                self._wake.clear()

    async def look_now(self, stored: StoredObject) -> None:
        """Check a schedule.

        If the schedule was changed or deleted while the check waited, do nothing: the next check reads the new state.
        """
        try:
            with suppress(NotFound):
                current = await self._objects.get_object(KIND, stored.workspace_id, stored.name)
                if (current.id, current.content) == (stored.id, stored.content):
                    await self.look(stored, datetime.now(UTC))
        except StoreUnavailable as error:
            _log.warning("a schedule cannot be checked: %s", error.detail)

    def waits(self, stored: StoredObject, now: datetime) -> bool:
        """Whether an earlier check of the same stored schedule has found that there is nothing to do at `now`."""
        known, since, until = self._waiting.get(stored.id, (None, now, now))
        return known is stored and since <= now < until

    async def look(self, stored: StoredObject, now: datetime) -> None:
        """Create the job of one stored schedule if its time has come.

        Raises:
          StoreUnavailable: the database does not answer; the next check tries again.
        """
        kept, following = await asyncio.to_thread(_read, stored, now)
        if kept.paused or kept.next_at is None:
            self._waiting[stored.id] = stored, _ALWAYS[0], _ALWAYS[1]
            return
        if kept.next_at > now:  # an earlier time comes next, so the clock was ahead and has been set back
            if following is not None and following < kept.next_at and following != kept.last_at:
                await self._objects.swap_object(stored, _json(replace(kept, next_at=following)))
            else:
                self._waiting[stored.id] = stored, now, following or kept.next_at
            return
        made = await asyncio.to_thread(_passed, kept, following, now)
        if await self._is_running(stored.workspace_id, kept.last_job):
            error = f"the previous job, {kept.last_job}, had not ended yet"
            made = replace(made, last_job=kept.last_job, last_error=error, missed=made.missed + 1)
        else:
            made = await self._made(stored, made)
        if await self._objects.swap_object(stored, _json(made)) and made.last_error:
            _log.warning("schedule %s did not create a job: %s", stored.name, made.last_error)

    async def _made(self, stored: StoredObject, kept: _Schedule) -> _Schedule:
        assert kept.last_at is not None  # noqa: S101 - the caller has set it
        key = f"schedule:{stored.id}:{kept.last_at.isoformat()}"
        try:
            job = await self._jobs.create_job(
                _named(stored, kept, kept.last_at), stored.workspace_id, idempotency_key=key
            )
        except StoreUnavailable:
            raise
        except HostError as error:
            return replace(kept, last_error=error.detail, missed=kept.missed + 1)
        return replace(kept, last_job=job.id)

    async def _is_running(self, workspace_id: str, job_id: str | None) -> bool:
        with suppress(NotFound):
            return job_id is not None and not (await self._jobs.get_job(workspace_id, job_id)).status.final
        return False


def _read(stored: StoredObject, now: datetime) -> tuple[_Schedule, datetime | None]:
    """Return a stored schedule, and the next time at which it runs. Blocking.

    The next time is None if the schedule is paused or has no time after now.
    """
    kept = _STORED.read_json(stored.content)
    is_over = kept.paused or kept.next_at is None
    return kept, None if is_over else next(_times(kept.cron, kept.timezone, now), None)


def _passed(kept: _Schedule, following: datetime | None, now: datetime) -> _Schedule:
    """Return a schedule whose latest time has passed, in its new state. The job for this time is not created yet."""
    assert kept.next_at is not None  # noqa: S101 - its time has come
    later = _times(kept.cron, kept.timezone, kept.next_at)
    passed = list(itertools.takewhile(lambda at: at <= now, itertools.islice(later, _MISSED_COUNTED)))
    more = len(passed) == _MISSED_COUNTED
    return replace(
        kept,
        last_at=_newest(kept, now) if more else [kept.next_at, *passed][-1],
        last_job=None,
        last_error=None,
        missed=kept.missed + len(passed),
        missed_more=kept.missed_more or more,
        next_at=following,
    )


def _named(stored: StoredObject, kept: _Schedule, at: datetime) -> JobSpec:
    local = at.astimezone(ZoneInfo(kept.timezone))
    return replace(kept.spec, name=f"{stored.name} {local:%Y-%m-%d %H:%M}", schedule=stored.name)


def _times(cron: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of a cron expression after a time, in UTC. Daylight saving is treated as in Debian's cron.

    Raises:
      InvalidRequest: the expression or the time zone is not valid.
    """
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError) as error:
        raise _refused("timezone", f"there is no time zone {timezone[:60]!r}", _zone_meant(timezone)) from error
    try:
        times = CronSim(cron, after.astimezone(zone))
    except CronSimError as error:
        hint = "minute, hour, day of the month, month, day of the week: '0 7 * * 1' is every Monday at 7"
        raise _refused("cron", f"{cron[:60]!r} is not a cron expression: {error}", hint) from error
    return (at.astimezone(UTC) for at in times)


@cache
def _zones() -> tuple[str, ...]:
    """Return the names of all time zones. Reading the names takes a few ms, because each zone is a file."""
    return tuple(sorted(available_timezones()))


def _zone_meant(given: str) -> str:
    """Return advice on an unknown time zone: the zone with this name as its city, or an example of a zone."""
    wanted = given.strip().replace(" ", "_").casefold()
    found = (one for one in _zones() if wanted in (one.casefold(), one.casefold().rpartition("/")[2]))
    meant = next(found, None)
    return "such as Europe/Berlin or UTC" if meant is None else f"did you mean {meant}?"


def _newest(kept: _Schedule, now: datetime) -> datetime:
    """Return the latest of a schedule's times that have passed."""
    back = next(CronSim(kept.cron, now.astimezone(ZoneInfo(kept.timezone)), reverse=True)).astimezone(UTC)
    later = _times(kept.cron, kept.timezone, back)
    return [back, *itertools.takewhile(lambda at: at <= now, later)][-1]


def _json(kept: _Schedule) -> str:
    return _STORED.json(kept)


def _next_runs(kept: _Schedule) -> Iterator[datetime]:
    if kept.next_at is not None:
        yield kept.next_at
        yield from itertools.islice(_times(kept.cron, kept.timezone, kept.next_at), _SHOWN - 1)


def _report(stored: StoredObject) -> ScheduleReport:
    kept = _STORED.read_json(stored.content)
    labels = [
        one if isinstance(one, str) else label_of(one, place, taken=())
        for place, one in enumerate(kept.spec.evaluators)
    ]
    return ScheduleReport(
        name=stored.name,
        cron=kept.cron,
        timezone=kept.timezone,
        paused=kept.paused,
        next_runs=() if kept.paused else tuple(_next_runs(kept)),
        last_at=kept.last_at,
        last_job=kept.last_job,
        last_error=kept.last_error,
        missed=kept.missed,
        missed_more=kept.missed_more,
        evaluators=tuple(labels),
        dataset=kept.spec.dataset if isinstance(kept.spec.dataset, str) else None,
        mapping=kept.spec.mapping,
        config=kept.spec.config,
        created_at=stored.created_at,
    )
