"""Each scheduled time starts one job, with a real database."""

import asyncio
import gc
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.platform.evaluators.registry import ResolvedEvaluator
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.schedules.service import Schedules
from evaluator_host.platform.store.objects import Objects, StoredObject
from evaluator_host.types.alerts import AlertRule, Metric
from evaluator_host.types.errors import InUse, InvalidRequest, NotFound
from tests.jobs.alerting import MONDAYS, ROWS, SPEC, Receiver, alerts_of
from tests.jobs.desk import OK, ON_EACH_DATABASE, WORKSPACE, Desk
from tests.loop_watch import held_s, watching


@ON_EACH_DATABASE
@pytest.mark.slow
async def test_two_hosts_make_one_job_for_a_time_and_missed_times_are_made_up_for_once(desk: Desk) -> None:
    hosts = [Schedules(desk.store.objects, desk.board) for _ in range(2)]
    made = await hosts[0].add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS, timezone="Europe/Berlin")
    assert [one.weekday() for one in made.next_runs] == [0, 0, 0]
    # 7 o'clock in Berlin is 5 or 6 o'clock in UTC
    assert len({one.astimezone(UTC).hour for one in made.next_runs} - {5, 6}) == 0
    (stored,) = await desk.store.objects.list_objects("schedule")
    early, late = made.next_runs[0] - timedelta(seconds=1), made.next_runs[2] + timedelta(days=1)
    await hosts[0].look(stored, early)
    assert await desk.board.list_jobs(WORKSPACE) == []
    await asyncio.gather(*(host.look(stored, late) for host in hosts))
    (job,) = await desk.board.list_jobs(WORKSPACE, schedule="weekly")
    now = await hosts[0].get_schedule(WORKSPACE, "weekly")
    assert (now.missed, now.last_at, now.last_job, now.last_error) == (2, made.next_runs[2], job.id, None)
    assert job.name is not None
    assert job.name.startswith("weekly 20")
    assert job.name.endswith("07:00")
    await desk.ended(job)


@pytest.mark.slow
async def test_a_schedule_waits_for_its_job_and_tells_what_it_cannot_make(desk: Desk) -> None:
    schedules = Schedules(desk.store.objects, desk.board)
    slow = JobSpec([OK], [{"inputs": {}, "outputs": "hang"}])
    made = await schedules.add_schedule(WORKSPACE, "often", slow, cron="*/5 * * * *")
    for run in (0, 1):
        (stored,) = await desk.store.objects.list_objects("schedule")
        await schedules.look(stored, made.next_runs[run])
    (job,) = await desk.board.list_jobs(WORKSPACE)
    now = await schedules.get_schedule(WORKSPACE, "often")
    assert (now.missed, now.last_error) == (1, f"the previous job, {job.id}, had not ended yet")
    await schedules.change_schedule(WORKSPACE, "often", paused=True)
    (stored,) = await desk.store.objects.list_objects("schedule")
    await schedules.look(stored, made.next_runs[2])
    assert len(await desk.board.list_jobs(WORKSPACE)) == 1
    assert (await schedules.get_schedule(WORKSPACE, "often")).next_runs == ()
    another = await schedules.run_schedule(WORKSPACE, "often")
    assert another.schedule == "often"
    now = await schedules.get_schedule(WORKSPACE, "often")
    assert (now.last_job, now.last_error) == (another.id, None)
    await schedules.delete_schedule(WORKSPACE, "often")
    assert await schedules.list_schedules(WORKSPACE) == []


async def test_a_schedule_that_was_deleted_while_its_check_waited_makes_no_job(desk: Desk) -> None:
    schedules = Schedules(desk.store.objects, desk.board)
    for name in ("deleted", "kept"):
        await schedules.add_schedule(WORKSPACE, name, SPEC, cron=MONDAYS)
    for stored in await desk.store.objects.list_objects("schedule"):
        due = {**json.loads(stored.content), "next_at": (datetime.now(UTC) - timedelta(minutes=1)).isoformat()}
        assert await desk.store.objects.swap_object(stored, json.dumps(due))
    both = await desk.store.objects.list_objects("schedule")
    await schedules.delete_schedule(WORKSPACE, "deleted")
    for stored in both:
        await schedules.look_now(stored)
    (job,) = await desk.board.list_jobs(WORKSPACE)
    assert job.schedule == "kept"
    await desk.ended(job)


@pytest.mark.long
async def test_a_schedule_runs_on_after_a_clock_that_was_ahead(desk: Desk) -> None:
    schedules = Schedules(desk.store.objects, desk.board)
    made = await schedules.add_schedule(WORKSPACE, "often", SPEC, cron="* * * * *")

    async def look(at: datetime) -> None:
        (stored,) = await desk.store.objects.list_objects("schedule")
        await schedules.look(stored, at)

    await look(made.next_runs[0] + timedelta(days=400))
    await desk.ended((await desk.board.list_jobs(WORKSPACE))[0])
    shown = (await schedules.get_schedule(WORKSPACE, "often")).next_runs[0]
    assert shown - made.next_runs[0] > timedelta(days=399), (
        "a page must show the next run after now, and not the stored one"
    )
    await look(made.next_runs[0] - timedelta(seconds=1))
    assert (await schedules.get_schedule(WORKSPACE, "often")).next_runs == made.next_runs
    await look(made.next_runs[0])
    assert (await schedules.get_schedule(WORKSPACE, "often")).last_at == made.next_runs[0]
    assert len(await desk.board.list_jobs(WORKSPACE)) == 2
    # if the clock goes back a little, the run is not repeated
    await look(made.next_runs[0] - timedelta(seconds=1))
    assert (await schedules.get_schedule(WORKSPACE, "often")).next_runs[0] == made.next_runs[1]


@pytest.mark.parametrize(("days", "missed"), [(1, "24"), (5, "at least 100")])
async def test_of_many_missed_times_the_newest_is_made_up_for(desk: Desk, days: int, missed: str) -> None:
    schedules = Schedules(desk.store.objects, desk.board)
    made = await schedules.add_schedule(WORKSPACE, "often", SPEC, cron="0 * * * *")
    (stored,) = await desk.store.objects.list_objects("schedule")
    await schedules.look(stored, made.next_runs[0] + timedelta(days=days, seconds=30))
    now = await schedules.get_schedule(WORKSPACE, "often")
    assert (now.last_at, now.missed_text) == (made.next_runs[0] + timedelta(days=days), missed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cron": "7 o'clock"}, "is not a cron expression"),
        ({"cron": "0 0 31 2 *"}, "31 2"),
        ({"timezone": "Berlin"}, "there is no time zone 'Berlin'"),
        ({"timezone": "new york"}, "there is no time zone 'new york'"),
        ({"spec": JobSpec([], ROWS)}, "needs an evaluator"),
        ({"spec": JobSpec([OK], "nowhere")}, "there is no data set nowhere"),
        ({"name": "a b"}, "name"),
    ],
)
async def test_a_schedule_that_could_never_run_is_refused(desk: Desk, changes: dict[str, Any], says: str) -> None:
    schedules = Schedules(desk.store.objects, desk.board)
    given: dict[str, Any] = {"name": "weekly", "spec": SPEC, "cron": MONDAYS, "timezone": "UTC", **changes}
    with pytest.raises((InvalidRequest, NotFound), match=says):
        await schedules.add_schedule(WORKSPACE, given.pop("name"), given.pop("spec"), **given)


@pytest.mark.long
async def test_many_large_schedules_and_alerts_do_not_hold_the_event_loop(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    """Many large schedules and alerts do not block the event loop. Each object here is about as large as one may be;
    together they take a second to decode.
    """
    alerts, schedules = alerts_of(desk, tmp_path), Schedules(desk.store.objects, desk.board)
    await schedules.add_schedule(WORKSPACE, "due", SPEC, cron=MONDAYS)
    job = await desk.ended(await desk.start(["1"]))
    await alerts.add_alert(WORKSPACE, "due", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=0))
    await alerts.test_alert(WORKSPACE, "due")  # the first message imports the modules that send messages
    receiver.messages.clear()
    await many(desk, "schedule", ("spec", "dataset"), [{"outputs": "1", "n": [0] * 110_000}])
    await many(desk, "alert", ("deliveries",), [message(number) for number in range(100)])
    (due,) = [one for one in await desk.store.objects.list_objects("schedule") if one.name == "due"]
    content = json.dumps(json.loads(due.content) | {"next_at": "2020-01-06T07:00:00Z"})
    assert await desk.store.objects.swap_object(due, content)
    (due,) = [one for one in await desk.store.objects.list_objects("alert") if one.name == "due"]
    content = json.dumps(json.loads(due.content) | {"deliveries": [message(0) | {"next_at": "2020-01-06T07:00:00Z"}]})
    assert await desk.store.objects.swap_object(due, content)

    held = held_s()
    gc.collect()
    # a server also freezes its objects when it starts
    gc.freeze()
    with watching() as watch:
        running = [asyncio.create_task(one.run()) for one in (alerts, schedules)]
        async with asyncio.timeout(120):
            while not receiver.messages or (await schedules.get_schedule(WORKSPACE, "due")).last_at is None:
                await asyncio.sleep(0.02)
        await schedules.list_schedules(WORKSPACE)
        await alerts.list_alerts(WORKSPACE)
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    gc.unfreeze()
    assert watch.longest_s < held, watch.longest


async def test_a_schedule_with_an_evaluator_twice_runs_it_once(desk: Desk) -> None:
    newest = 1

    async def resolve(_workspace: str, reference: str) -> ResolvedEvaluator:
        version = int(reference.partition("@")[2] or newest)
        return ResolvedEvaluator(replace(OK, name="qa", version=version), None)

    schedules = Schedules(desk.store.objects, replace(desk.board, resolve=resolve))
    await schedules.add_schedule(WORKSPACE, "twice", JobSpec(["qa", "qa@2"], ROWS), cron=MONDAYS)
    newest = 2
    job = await schedules.run_schedule(WORKSPACE, "twice")
    assert job.evaluators == ("qa@2",)
    await desk.ended(job)


async def test_slow_schedules_of_a_workspace_do_not_delay_those_of_another(desk: Desk) -> None:
    free = asyncio.Event()

    async def resolve(_workspace: str, _reference: str) -> ResolvedEvaluator:
        await free.wait()
        return ResolvedEvaluator(OK, None)

    schedules = Schedules(desk.store.objects, replace(desk.board, resolve=resolve))
    other = (await desk.store.workspaces.ensure_workspace("other")).id
    free.set()
    for number in range(10):
        await schedules.add_schedule(WORKSPACE, f"slow{number}", JobSpec(["slow"], ROWS), cron=MONDAYS)
    await schedules.add_schedule(other, "x", SPEC, cron=MONDAYS)
    for one in await desk.store.objects.list_objects("schedule"):
        content = json.dumps(json.loads(one.content) | {"next_at": "2020-01-06T07:00:00Z"})
        assert await desk.store.objects.swap_object(one, content)
    free.clear()
    running = asyncio.create_task(schedules.run())
    async with asyncio.timeout(60):
        while (await schedules.get_schedule(other, "x")).last_job is None:
            await asyncio.sleep(0.02)
        free.set()
        while any(one.last_job is None for one in await schedules.list_schedules(WORKSPACE)):
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def message(number: int) -> dict[str, Any]:
    body = json.dumps({"type": "alert.firing", "text": "x" * 1000})
    at = "2026-01-05T07:00:00Z"
    return {"id": f"msg_{number}", "type": "alert.firing", "body": body, "created_at": at, "next_at": None}


async def many(desk: Desk, kind: str, field: tuple[str, ...], value: Any) -> None:
    """Store 99 copies of the only object of a kind, each with another value of one field."""
    (stored,) = await desk.store.objects.list_objects(kind)
    content = json.loads(stored.content)
    holder = content
    for name in field[:-1]:
        holder = holder[name]
    holder[field[-1]] = value
    for number in range(99):
        await desk.store.objects.add_object(kind, WORKSPACE, f"many{number}", json.dumps(content), most=100)


@ON_EACH_DATABASE
async def test_an_object_is_read_again_only_if_it_has_changed(desk: Desk) -> None:
    objects = desk.store.objects
    for name in ("a", "b", "c"):
        await objects.add_object("kept", WORKSPACE, name, f'"{name}"', most=5)
    before = await objects.list_every("kept")
    assert await objects.swap_object(before[1], '"changed"')
    await objects.delete_object("kept", WORKSPACE, "c")
    await objects.add_object("kept", WORKSPACE, "d", '"d"', most=5)
    after = await objects.list_every("kept")
    assert [one.content for one in after] == ['"a"', '"changed"', '"d"']
    assert after[0] is before[0]


class OvertakenObjects(Objects):
    """Objects that another host changes each time after they were read."""

    async def get_object(self, kind: str, workspace_id: str, name: str) -> StoredObject:
        found = await super().get_object(kind, workspace_id, name)
        await self.swap_object(found, f"{found.content} ")
        return found


async def test_a_change_that_others_always_overtake_is_refused(desk: Desk) -> None:
    objects = OvertakenObjects(desk.store.database)
    await objects.add_object("schedule", WORKSPACE, "a", "1", most=5)
    with pytest.raises(InUse, match="somebody else is changing the schedule"):
        await objects.change_object("schedule", WORKSPACE, "a", lambda content: f"{content}2")


async def test_a_schedule_that_waits_is_checked_again_when_the_clock_goes_back_or_it_has_changed(desk: Desk) -> None:
    schedules = Schedules(desk.store.objects, desk.board)
    made = await schedules.add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    (stored,) = await desk.store.objects.list_every("schedule")
    now = made.next_runs[0] - timedelta(hours=2)
    await schedules.look(stored, now)
    second = timedelta(seconds=1)
    times = [now - second, now, made.next_runs[0] - second, made.next_runs[0]]
    assert [schedules.waits(stored, at) for at in times] == [False, True, True, False]
    await schedules.change_schedule(WORKSPACE, "weekly", paused=True)
    (stored,) = await desk.store.objects.list_every("schedule")
    assert not schedules.waits(stored, now)
    await schedules.look(stored, now)
    assert all(schedules.waits(stored, at) for at in times)
