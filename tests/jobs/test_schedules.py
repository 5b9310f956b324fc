"""Each scheduled time starts one job, and each metric out of bounds sends one message, with a real database and a real
receiver.
"""

import asyncio
import base64
import gc
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import pytest
from sqlalchemy import update

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.system.lookups import Lookups
from evaluator_host.platform.alerts.service import Alerts
from evaluator_host.platform.alerts.webhooks import Webhooks
from evaluator_host.platform.evaluators.registry import ResolvedEvaluator
from evaluator_host.platform.jobs import queue
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.schema import JobEvaluatorTable
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.schedules.service import Schedules
from evaluator_host.platform.store.objects import StoredObject
from evaluator_host.platform.traces.table import Traces
from evaluator_host.types.alerts import AlertReport, AlertRule, Metric
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound
from evaluator_host.types.jobs import JobConfig
from tests.jobs.desk import OK, ON_EACH_DATABASE, WORKSPACE, Desk, opened
from tests.loop_watch import held_s, watching
from tests.tables import tables

ROWS = [{"inputs": {}, "outputs": "1"}]
SPEC = JobSpec([OK], ROWS)
MONDAYS = "0 7 * * 1"


class Receiver:
    """A webhook that records its messages. It answers first with the given statuses, then always with 200."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append((dict(self.headers), body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?token=1"
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.messages]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
async def desk(database_url: str, tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(database_url, tmp_path) as one:
        yield one


def sources(desk: Desk) -> dict[str, Any]:
    """Return the resources from which alerts read metrics, connected as on a host."""
    runs, traces = Schedules(desk.store.objects, desk.board), Traces(desk.store.database)
    return {"live": lambda: traces, "schedules": lambda: runs}


def alerts_of(desk: Desk, tmp_path: Path, *hosts: str, names: Lookups | None = None) -> Alerts:
    settings = Settings(data_dir=tmp_path, webhook_hosts=hosts or ("127.0.0.1",))
    found = names or Lookups()
    webhooks = Webhooks(settings, desk.store.secrets, found)
    return Alerts(desk.store.objects, desk.board, webhooks, **sources(desk))


async def check(desk: Desk, alerts: Alerts, stored: StoredObject) -> None:
    """Check the metric of an alert, and send the messages that are due."""
    await alerts.look(stored)
    for receiver, some in alerts.due(await desk.store.objects.list_objects("alert")).items():
        await alerts.send(receiver, some)


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


async def test_of_thousands_of_missed_times_the_newest_is_made_up_for(desk: Desk) -> None:
    schedules = Schedules(desk.store.objects, desk.board)
    made = await schedules.add_schedule(WORKSPACE, "often", SPEC, cron="* * * * *")
    (stored,) = await desk.store.objects.list_objects("schedule")
    await schedules.look(stored, made.next_runs[0] + timedelta(days=2, seconds=30))
    now = await schedules.get_schedule(WORKSPACE, "often")
    assert (now.last_at, now.missed) == (made.next_runs[0] + timedelta(days=2), 1000)


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


@ON_EACH_DATABASE
@pytest.mark.slow
async def test_an_alert_fires_once_for_a_bad_job_and_tells_when_it_is_good_again(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    hosts = [alerts_of(desk, tmp_path) for _ in range(2)]
    schedules = Schedules(desk.store.objects, desk.board)
    await schedules.add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await desk.store.secrets.set_secret(WORKSPACE, "hook", "a-key-to-sign-with")
    rule = AlertRule(Metric.FAILURE_RATE, receiver.url, schedule="weekly", above=0.5, secret="hook")
    await hosts[0].add_alert(WORKSPACE, "failing", rule)

    async def looked(words: list[str]) -> None:
        rows = [{"inputs": {}, "outputs": word} for word in words]
        job = await desk.board.create_job(JobSpec([OK], rows, name="run", schedule="weekly"), WORKSPACE)
        await desk.ended(job)
        (stored,) = await desk.store.objects.list_objects("alert")
        await asyncio.gather(*(check(desk, host, stored) for host in hosts))
        for host in hosts:
            (stored,) = await desk.store.objects.list_objects("alert")
            await check(desk, host, stored)

    await looked(["garbage", "garbage", "1"])
    (body,) = receiver.bodies
    assert (body["type"], body["alert"], body["scored"], body["failed"]) == ("alert.firing", "failing", 1, 2)
    assert "the failure rate of evaluator 1 is 0.6667, over 0.5, in job run (1 of 3 rows scored" in body["text"]
    headers, raw = receiver.messages[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
    digest = hmac.digest(b"a-key-to-sign-with", signed, hashlib.sha256)
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    await looked(["1"])
    await looked(["1"])
    assert [one["type"] for one in receiver.bodies] == ["alert.firing", "alert.resolved"]
    found = await hosts[0].get_alert(WORKSPACE, "failing")
    assert (found.firing, found.value, [one.status for one in found.deliveries]) == (False, 0.0, ["sent", "sent"])


async def test_an_alert_tells_of_each_run_of_its_schedule_that_made_no_job(desk: Desk, tmp_path: Path) -> None:
    schedules, alerts = Schedules(desk.store.objects, desk.board), alerts_of(desk, tmp_path)
    slow = JobSpec([OK], [{"inputs": {}, "outputs": "hang"}])
    made = await schedules.add_schedule(WORKSPACE, "often", slow, cron="*/5 * * * *")
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, None, schedule="often", below=0.5))
    texts = []
    for run in (0, 1, 2):
        (stored,) = await desk.store.objects.list_objects("schedule")
        await schedules.look(stored, made.next_runs[run])
        for _ in range(2):  # the second check has nothing new to report
            (alert,) = await desk.store.objects.list_objects("alert")
            await check(desk, alerts, alert)
        found = await alerts.get_alert(WORKSPACE, "low")
        texts.append((found.firing, [one.text for one in found.deliveries]))
    (job,) = await desk.board.list_jobs(WORKSPACE)
    told = f"alert low: schedule often did not create a job: the previous job, {job.id}, had not ended yet"
    assert texts == [(False, []), (True, [told]), (True, [told, told])]
    last = await alerts.get_alert(WORKSPACE, "low")
    assert {one.job for one in last.deliveries} == {None}


async def test_an_alert_that_cannot_be_checked_does_not_end_the_checks_of_others(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    for name in ("first", "second"):
        await alerts.add_alert(WORKSPACE, name, AlertRule(Metric.MEAN, None, schedule="weekly", below=0.5))
    seen: list[str] = []

    async def look(stored: StoredObject) -> None:
        seen.append(stored.name)
        if stored.name == "first":
            raise InvalidRequest("the database cannot compare a value")

    monkeypatch.setattr(alerts, "look", look)
    monkeypatch.setattr("evaluator_host.platform.alerts.service._LOOK_EVERY_S", 0.05)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(alerts.run(), 1)
    assert {*seen[2:]} == {"first", "second"}


async def test_an_alert_without_a_webhook_keeps_its_messages(desk: Desk, tmp_path: Path) -> None:
    alerts = alerts_of(desk, tmp_path)
    job = await desk.ended(await desk.start(["1", "0"]))
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, job=job.id, below=2))
    for _ in range(2):
        (stored,) = await desk.store.objects.list_objects("alert")
        await check(desk, alerts, stored)
    found = await alerts.get_alert(WORKSPACE, "low")
    (told,) = found.deliveries
    assert (told.type, told.status, told.attempts, told.error) == ("alert.firing", "shown", 0, None)
    assert (told.job, found.firing) == (job.id, True)
    assert told.text.startswith("alert low: the mean of evaluator 1 is 1, under 2")
    assert not found.acknowledged
    assert (await alerts.change_alert(WORKSPACE, "low", acknowledged=True)).acknowledged
    assert (await alerts.test_alert(WORKSPACE, "low")).deliveries[0].text == "alert low: this is a test"


async def test_only_a_few_test_messages_of_a_workspace_are_sent_at_once(desk: Desk, tmp_path: Path) -> None:
    open_now = most = 0
    full, is_full = 4, asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        if open_now == full:
            is_full.set()
        await is_full.wait()
        await reader.readuntil(b"\r\n\r\n")
        open_now -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    alerts = alerts_of(desk, tmp_path)
    job = await desk.ended(await desk.start(["1"]))
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        names = [f"low-{number}" for number in range(5 * full)]
        for name in names:
            await alerts.add_alert(WORKSPACE, name, AlertRule(Metric.MEAN, url, job=job.id, below=2))
        sent = await asyncio.gather(*(alerts.test_alert(WORKSPACE, name) for name in names))
    assert ({one.deliveries[0].status for one in sent}, most) == ({"sent"}, full)


@pytest.mark.long
@pytest.mark.slow
async def test_an_acknowledgement_lasts_until_the_next_message(desk: Desk, tmp_path: Path) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, schedule="weekly", below=2))

    async def looked() -> AlertReport:
        spec = JobSpec([OK], ROWS, name="run", schedule="weekly")
        await desk.ended(await desk.board.create_job(spec, WORKSPACE))
        (stored,) = await desk.store.objects.list_objects("alert")
        await check(desk, alerts, stored)
        return await alerts.get_alert(WORKSPACE, "low")

    assert (await looked()).firing
    for change in ({"acknowledged": True}, {"paused": True}):  # pausing an alert also acknowledges it
        assert (await alerts.change_alert(WORKSPACE, "low", **change)).acknowledged
        assert (await alerts.change_alert(WORKSPACE, "low", paused=False)).acknowledged
        found = await looked()
        assert (found.firing, found.acknowledged) == (True, False)


async def test_a_message_that_is_not_taken_is_tried_again(desk: Desk, receiver: Receiver, tmp_path: Path) -> None:
    alerts = alerts_of(desk, tmp_path)
    job = await desk.ended(await desk.start(["1", "0"]))
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=2))
    receiver.statuses = [503]
    (stored,) = await desk.store.objects.list_objects("alert")
    await check(desk, alerts, stored)
    found = await alerts.get_alert(WORKSPACE, "low")
    (sent,) = found.deliveries
    assert (sent.status, sent.attempts, sent.error) == ("waiting", 1, "the webhook answered 503")
    assert found.paused  # the alert is paused, because its only job has been checked
    (stored,) = await desk.store.objects.list_objects("alert")
    earlier = stored.content.replace(str(datetime.now(UTC).year), "2020")
    assert await desk.store.objects.swap_object(stored, earlier)
    (stored,) = await desk.store.objects.list_objects("alert")
    # the alerts of another host are used here, because this host waits after a failed message
    await check(desk, alerts_of(desk, tmp_path), stored)
    (sent,) = (await alerts.get_alert(WORKSPACE, "low")).deliveries
    assert (sent.status, sent.attempts, sent.error) == ("sent", 2, None)
    assert len({headers["webhook-id"] for headers, _ in receiver.messages}) == 1


async def test_a_test_message_says_how_it_went(desk: Desk, receiver: Receiver, tmp_path: Path) -> None:
    alerts = alerts_of(desk, tmp_path)
    job = await desk.ended(await desk.start(["1"]))
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=0))
    assert (await alerts.test_alert(WORKSPACE, "low")).deliveries[0].status == "sent"
    assert receiver.bodies[0]["text"] == "alert low: this is a test"
    with pytest.raises(NameTaken):
        await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=0))


async def test_a_name_is_looked_up_for_each_message_and_called_at_the_address_that_was_checked(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    addresses, asked = ["127.0.0.1"], list[str]()

    def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return addresses

    job = await desk.ended(await desk.start(["1"]))
    port = receiver.server.server_port
    url = f"http://hook.test:{port}/in"
    public = alerts_of(desk, tmp_path, "public", names=Lookups(resolve))
    await public.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, url, job=job.id, below=0))
    assert not asked
    (refused,) = (await public.test_alert(WORKSPACE, "low")).deliveries
    assert "may not call hook.test" in str(refused.error)
    assert (asked, receiver.messages) == (["hook.test"], [])
    listed = alerts_of(desk, tmp_path, "hook.test", names=Lookups(resolve))
    assert (await listed.test_alert(WORKSPACE, "low")).deliveries[0].status == "sent"
    assert asked == ["hook.test", "hook.test"]
    assert receiver.messages[0][0]["Host"] == f"hook.test:{port}"
    addresses[:] = ["127.0.0.2", "127.0.0.1"]  # no server listens at the first address
    assert (await listed.test_alert(WORKSPACE, "low")).deliveries[0].status == "sent"


@pytest.mark.slow
async def test_webhooks_whose_name_server_is_silent_delay_no_other_alert(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    silent, waiting = Event(), list[str]()

    def resolve(host: str, _port: int) -> list[str]:
        if host.startswith("slow"):
            waiting.append(host)
            silent.wait()
        return ["127.0.0.1"]

    alerts = alerts_of(desk, tmp_path, "*", names=Lookups(resolve, limit_s=1000))
    job = await desk.ended(await desk.start(["0"]))
    space = (await desk.store.workspaces.ensure_workspace("other")).id
    other = await desk.ended(await desk.start(["0"], workspace=space), workspace=space)
    running = asyncio.create_task(alerts.run())
    for number in range(12):
        rule = AlertRule(Metric.MEAN, f"http://slow{number}.test/", job=job.id, below=2)
        await alerts.add_alert(WORKSPACE, f"slow{number}", rule)
    while len(waiting) < 4:  # a workspace may use this many threads
        await asyncio.sleep(0.01)
    await alerts.add_alert(space, "low", AlertRule(Metric.MEAN, receiver.url, job=other.id, below=2))
    try:
        async with asyncio.timeout(100):
            while not receiver.messages:
                await asyncio.sleep(0.01)
    finally:
        silent.set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"url": "http://169.254.169.254/latest", "live": "x"}, "there is no evaluator x"),
        ({"url": "http://169.254.169.254/latest"}, "may not call 169.254.169.254"),
        ({"url": "http://localhost:1/"}, "may not call localhost"),
        ({"url": "http://a.LOCALHOST./"}, "may not call a.localhost."),
        ({"url": "http://127.1/"}, "may not call 127.1"),
        ({"url": "http://0xa000001/"}, "may not call 0xa000001"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "may not call ::ffff:"),
        ({"url": "http://[::1]:1/"}, "may not call ::1"),
        ({"url": "http://2130706433/"}, "may not call 2130706433"),
        ({"url": "file:///etc/passwd"}, "http:// or https://"),
        ({"url": "http://user:password@example.com"}, "user or a password"),
        ({"url": f"https://{'a' * 70}.com/hook"}, "is not a URL"),
        ({"url": "https://..../hook"}, "is not a URL"),
        ({"url": "https://[::1/hook"}, "is not a URL"),
        ({"url": "https://example.com", "schedule": "weekly"}, "watches a job, a schedule or live traces"),
        ({"url": "https://example.com", "above": 1.0}, "exactly one bound"),
        ({"metric": Metric.PASS_RATE, "below": 80}, "pass_rate is always between 0 and 1, but the bound is 80"),
        ({"metric": Metric.FAILURE_RATE, "below": None, "above": 5}, "failure_rate is always between 0 and 1"),
        ({"url": "https://example.com", "job": "job_0"}, "there is no job"),
    ],
)
async def test_an_alert_calls_nothing_inside_and_watches_what_exists(
    desk: Desk, tmp_path: Path, rule: dict[str, Any], says: str
) -> None:
    alerts = alerts_of(desk, tmp_path, "public")
    job = await desk.start(["1"])
    given = {"metric": Metric.MEAN, "job": None if "live" in rule else job.id, "below": 0.5, **rule}
    with pytest.raises((InvalidRequest, NotFound), match=says):
        await alerts.add_alert(WORKSPACE, "low", AlertRule(**given))
    await desk.ended(job)


@pytest.mark.long
@pytest.mark.slow
async def test_an_alert_on_several_evaluators_is_good_again_once_all_of_them_are(desk: Desk, tmp_path: Path) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, schedule="weekly", below=0.5))

    async def told(*means: float) -> tuple[bool, list[str]]:
        before = len((await alerts.get_alert(WORKSPACE, "low")).deliveries)
        spec = JobSpec([OK] * len(means), ROWS, name="run", schedule="weekly")
        job = await desk.ended(await desk.board.create_job(spec, WORKSPACE))
        # make the means of the evaluators differ, since all evaluators in these tests give the same score
        for position, mean in enumerate(means):
            chosen = (JobEvaluatorTable.job_id == job.id) & (JobEvaluatorTable.position == position)
            await tables(desk.store).jobs._database.change_rows(
                update(JobEvaluatorTable).where(chosen).values(total=str(len(ROWS) * Fraction(mean)))
            )
        (stored,) = await desk.store.objects.list_objects("alert")
        await check(desk, alerts, stored)
        found = await alerts.get_alert(WORKSPACE, "low")
        return found.firing, [one.type for one in found.deliveries[: len(found.deliveries) - before]]

    assert await told(0.2, 0.9) == (True, ["alert.firing"])
    assert await told(0.9, 0.2, 0.9, 0.1) == (True, ["alert.firing"] * 2)
    assert await told(0.9, 0.8) == (False, ["alert.resolved"])
    assert await told(0.9, 0.8) == (False, [])


@pytest.mark.long
@pytest.mark.parametrize("metric", [Metric.MEAN, Metric.PASS_RATE])
async def test_an_alert_fires_when_no_row_could_be_scored(desk: Desk, tmp_path: Path, metric: Metric) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(metric, schedule="weekly", below=0.5, min_rows=2))

    async def told(rows: int, *healthy: int) -> list[str]:
        """Run a job whose first evaluator fails in all rows, and whose other evaluators score these numbers of rows;
        return the texts of the alert's new messages.
        """
        before = len((await alerts.get_alert(WORKSPACE, "low")).deliveries)
        failing = [{"inputs": {}, "outputs": "garbage"}] * rows
        spec = JobSpec([OK] * (1 + len(healthy)), failing, name="run", schedule="weekly")
        job = await desk.ended(await desk.board.create_job(spec, WORKSPACE))
        for position, scored in enumerate(healthy, 1):
            chosen = (JobEvaluatorTable.job_id == job.id) & (JobEvaluatorTable.position == position)
            good = {
                "total": str(scored * Fraction(9, 10)),
                "failed": 0,
                **dict.fromkeys(("scored", "scores", "numbers", "judged", "passed"), scored),
            }
            await tables(desk.store).jobs._database.change_rows(update(JobEvaluatorTable).where(chosen).values(good))
        (stored,) = await desk.store.objects.list_objects("alert")
        await check(desk, alerts, stored)
        found = (await alerts.get_alert(WORKSPACE, "low")).deliveries
        return [one.text for one in found[: len(found) - before]]

    named = metric.replace("_", " ")
    text = f"alert low: evaluator 1 has no {named} in job run, because no row could be scored (0 of 2 rows scored, 2 failed)"
    assert await told(2) == [text]
    assert await told(2, 2) == [text]  # the healthy evaluator does not resolve the alert
    assert await told(1, 2) == []  # an evaluator with too few rows is not judged


@pytest.mark.long
@pytest.mark.parametrize(
    ("metric", "behind", "none"), [(Metric.MEAN, ("scores", "total"), "0"), (Metric.PASS_RATE, ("judged", "passed"), 0)]
)
async def test_the_minimum_of_rows_of_an_alert_counts_the_rows_behind_its_metric(
    desk: Desk, tmp_path: Path, metric: Metric, behind: tuple[str, str], none: Any
) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(metric, schedule="weekly", below=0.5, min_rows=3))
    told = []
    for rows in (2, 3):
        spec = JobSpec([OK], [{"inputs": {}, "outputs": "1"}] * 4, name="run", schedule="weekly")
        job = await desk.ended(await desk.board.create_job(spec, WORKSPACE))
        counts = dict(zip(behind, (rows, none), strict=True))
        chosen = JobEvaluatorTable.job_id == job.id
        await tables(desk.store).jobs._database.change_rows(update(JobEvaluatorTable).where(chosen).values(counts))
        (stored,) = await desk.store.objects.list_objects("alert")
        await check(desk, alerts, stored)
        told.append([one.text for one in (await alerts.get_alert(WORKSPACE, "low")).deliveries])
    named = metric.replace("_", " ")
    text = (
        f"alert low: the {named} of evaluator 1 is 0, under 0.5, in job run (4 of 4 rows scored, 0 failed, 3 counted)"
    )
    assert told == [[], [text]]


GOOD: dict[str, Any] = {
    "total": "9/5", "passed": 2, "failed": 0, "skipped": 0,
    **dict.fromkeys(("scored", "scores", "numbers", "judged"), 2),
}  # fmt: skip
BAD = {**GOOD, "total": "1/5", "passed": 0}
ONLY_LABELS = {**GOOD, "total": "0", "passed": 0, "scores": 0, "numbers": 0, "judged": 0}
SKIPS = {**ONLY_LABELS, "scored": 0, "skipped": 2}
DOUBTFUL = {**GOOD, "doubted": 2}


async def counted(desk: Desk, alerts: Alerts, *counts: dict[str, Any]) -> list[str]:
    """Run a job whose evaluators have these counts; return the texts of the new messages of the alert `low`."""
    before = len((await alerts.get_alert(WORKSPACE, "low")).deliveries)
    spec = JobSpec([OK] * len(counts), [{"inputs": {}, "outputs": "1"}] * 2, name="run", schedule="weekly")
    job = await desk.ended(await desk.board.create_job(spec, WORKSPACE))
    for position, values in enumerate(counts):
        chosen = (JobEvaluatorTable.job_id == job.id) & (JobEvaluatorTable.position == position)
        await tables(desk.store).jobs._database.change_rows(update(JobEvaluatorTable).where(chosen).values(values))
    (stored,) = await desk.store.objects.list_objects("alert")
    await check(desk, alerts, stored)
    found = (await alerts.get_alert(WORKSPACE, "low")).deliveries
    return [f"{one.type} {one.text}" for one in found[: len(found) - before]]


@pytest.mark.long
@pytest.mark.parametrize("metric", [Metric.MEAN, Metric.PASS_RATE])
async def test_an_alert_ignores_evaluators_that_only_label_or_skip(desk: Desk, tmp_path: Path, metric: Metric) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(metric, schedule="weekly", below=0.5))
    assert await counted(desk, alerts, ONLY_LABELS) == []
    [text] = await counted(desk, alerts, BAD, ONLY_LABELS)
    assert text.startswith("alert.firing ")
    assert await counted(desk, alerts, ONLY_LABELS, SKIPS) == []
    [text] = await counted(desk, alerts, GOOD, SKIPS)
    assert text.startswith("alert.resolved ")


async def test_doubtful_scores_are_never_within_the_bounds_of_an_alert(desk: Desk, tmp_path: Path) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, schedule="weekly", below=0.5))
    told = "alert low: the mean of evaluator 1 in job run cannot be relied on: 2 of 2 scores are doubtful: see the warnings"
    for _ in range(2):
        assert await counted(desk, alerts, DOUBTFUL) == [f"alert.firing {told} (2 of 2 rows scored, 0 failed)"]
    assert [text.split()[0] for text in await counted(desk, alerts, GOOD)] == ["alert.resolved"]


async def test_a_failure_rate_is_reliable_though_the_scores_are_doubtful(desk: Desk, tmp_path: Path) -> None:
    alerts = alerts_of(desk, tmp_path)
    await Schedules(desk.store.objects, desk.board).add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.FAILURE_RATE, schedule="weekly", above=0.5))
    assert await counted(desk, alerts, DOUBTFUL) == []


@pytest.mark.long
@pytest.mark.parametrize(("below", "told"), [(0.5, "alert.resolved"), (2, "alert.firing")])
@pytest.mark.parametrize("watched", ["job", "schedule"])
async def test_a_failed_job_is_checked_again_after_it_was_resumed(
    desk: Desk, tmp_path: Path, watched: str, below: float, told: str
) -> None:
    alerts, schedules = alerts_of(desk, tmp_path), Schedules(desk.store.objects, desk.board)
    rows = [{"inputs": {}, "outputs": output} for output in ("garbage", "1")]
    spec = JobSpec([OK], rows, name="run", config=JobConfig(max_failures=0, parallelism=1))
    await schedules.add_schedule(WORKSPACE, "weekly", spec, cron=MONDAYS)
    rule = AlertRule(Metric.MEAN, schedule="weekly", below=below)
    if watched == "schedule":
        await alerts.add_alert(WORKSPACE, "low", rule)
    job = await desk.ended(await schedules.run_schedule(WORKSPACE, "weekly"))
    if watched == "job":
        await alerts.add_alert(WORKSPACE, "low", replace(rule, schedule=None, job=job.id))

    async def looked() -> list[str]:
        for _ in range(2):  # the second check has nothing new to report
            (stored,) = await desk.store.objects.list_objects("alert")
            await check(desk, alerts, stored)
        return [one.type for one in (await alerts.get_alert(WORKSPACE, "low")).deliveries]

    assert await looked() == ["alert.firing"]
    await desk.board.set_desired_state(WORKSPACE, job.id, DesiredState.RUN)
    await desk.ended(job)
    assert await looked() == [told, "alert.firing"]


async def test_a_job_that_version_1_0_0_checked_is_not_checked_again(desk: Desk, tmp_path: Path) -> None:
    alerts, schedules = alerts_of(desk, tmp_path), Schedules(desk.store.objects, desk.board)
    await schedules.add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, schedule="weekly", below=2))
    job = await desk.ended(await schedules.run_schedule(WORKSPACE, "weekly"))
    (stored,) = await desk.store.objects.list_objects("alert")
    content = json.dumps(json.loads(stored.content) | {"seen": [job.id], "seen_at": str(job.finished_at)})
    assert await desk.store.objects.swap_object(stored, content)
    (stored,) = await desk.store.objects.list_objects("alert")
    await check(desk, alerts, stored)
    assert (await alerts.get_alert(WORKSPACE, "low")).deliveries == ()


async def test_a_secret_that_cannot_sign_is_refused_and_stops_no_message(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    alerts = alerts_of(desk, tmp_path)
    job = await desk.ended(await desk.start(["0"]))
    rule = AlertRule(Metric.MEAN, receiver.url, job=job.id, below=2, secret="hook")
    await desk.store.secrets.set_secret(WORKSPACE, "hook", "whsec_abcdefghi")
    with pytest.raises(InvalidRequest, match="is not base64"):
        await alerts.add_alert(WORKSPACE, "low", rule)
    await desk.store.secrets.set_secret(WORKSPACE, "hook", "a-key-to-sign-with")
    await alerts.add_alert(WORKSPACE, "low", rule)
    await desk.store.secrets.set_secret(WORKSPACE, "hook", "whsec_abcdefghi")
    (stored,) = await desk.store.objects.list_objects("alert")
    await check(desk, alerts, stored)
    (told,) = (await alerts.get_alert(WORKSPACE, "low")).deliveries
    assert told.status == "waiting"
    assert "is not base64" in str(told.error)


@pytest.mark.long
async def test_an_alert_that_is_deleted_while_it_sends_stops_no_other_alert(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    """An alert that is deleted while it sends a message stops no other alert. The receiver answers only after the alert
    is deleted; then the alert's second message must never be sent.
    """

    class Deleted(Alerts):
        async def _send(self, workspace_id: str, rule: AlertRule, to: str, *message: Any) -> str | None:
            if rule.below == 3:
                await self.delete_alert(WORKSPACE, "gone")
                return "no answer"
            return await super()._send(workspace_id, rule, to, *message)

    settings = Settings(data_dir=tmp_path, webhook_hosts=("127.0.0.1",))
    alerts = Deleted(desk.store.objects, desk.board, desk.store.secrets, settings, **sources(desk))
    job = await desk.ended(await desk.start(["0"], evaluators=(OK, OK)))
    await alerts.add_alert(WORKSPACE, "gone", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=3))
    running = asyncio.create_task(alerts.run())
    while await alerts.list_alerts(WORKSPACE):
        await asyncio.sleep(0.01)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=2))
    async with asyncio.timeout(60):
        while not receiver.messages and not running.done():
            await asyncio.sleep(0.01)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.long
async def test_a_receiver_gets_one_message_at_a_time_and_rests_after_a_failure(
    desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    asked, released = list[str](), asyncio.Event()

    class Held(Alerts):
        async def _send(self, workspace_id: str, rule: AlertRule, to: str, *message: Any) -> str | None:
            if to == receiver.url:
                return await super()._send(workspace_id, rule, to, *message)
            asked.append(to)
            await released.wait()
            return "no answer"

    settings = Settings(data_dir=tmp_path, webhook_hosts=("127.0.0.1",))
    alerts = Held(desk.store.objects, desk.board, desk.store.secrets, settings, **sources(desk))
    job = await desk.ended(await desk.start(["0"]))
    for number in range(6):
        rule = AlertRule(Metric.MEAN, f"http://127.0.0.1:9/{number}", job=job.id, below=2)
        await alerts.add_alert(WORKSPACE, f"away{number}", rule)
    running = asyncio.create_task(alerts.run())
    async with asyncio.timeout(60):
        while not asked:
            await asyncio.sleep(0.01)
        await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=2))
        while not receiver.messages:  # wait for messages of the same workspace
            await asyncio.sleep(0.01)
        released.set()
        while all(
            one.deliveries[0].attempts == 0 or one.deliveries[0].error != "no answer"
            for one in await alerts.list_alerts(WORKSPACE)
        ):
            await asyncio.sleep(0.01)
        await alerts.add_alert(WORKSPACE, "later", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=2))
        while len(receiver.messages) < 2:  # wait for another check of all alerts
            await asyncio.sleep(0.01)
    assert len(asked) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.slow
async def test_messages_that_wait_are_kept_and_dropped_ones_are_counted(
    desk: Desk, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator_host.platform.alerts.alert.WAITING", 4)
    alerts = alerts_of(desk, tmp_path)
    job = await desk.ended(await desk.start(["1"]))
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, receiver.url, job=job.id, below=0))
    receiver.statuses = [503] * 7
    for count, kept, unsent in ((2, 2, 0), (5, 4, 3)):
        found = [await alerts.test_alert(WORKSPACE, "low") for _ in range(count)][-1]
        assert {one.status for one in found.deliveries} == {"waiting"}
        assert (len(found.deliveries), found.unsent) == (kept, unsent)


async def test_an_alert_sees_jobs_of_a_host_whose_clock_is_behind(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) - timedelta(seconds=90)

    alerts, schedules = alerts_of(desk, tmp_path), Schedules(desk.store.objects, desk.board)
    await schedules.add_schedule(WORKSPACE, "weekly", SPEC, cron=MONDAYS)
    await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, schedule="weekly", below=2))
    monkeypatch.setattr(queue, "datetime", Behind)
    await desk.ended(await schedules.run_schedule(WORKSPACE, "weekly"))
    (stored,) = await desk.store.objects.list_objects("alert")
    await check(desk, alerts, stored)
    assert len((await alerts.get_alert(WORKSPACE, "low")).deliveries) == 1


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
