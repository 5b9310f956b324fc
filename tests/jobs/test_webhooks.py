"""Messages of alerts arrive at a real webhook, or wait, and call nothing that they may not call."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from evaluator_host.engine.system.lookups import Lookups
from evaluator_host.platform.alerts.alert import Delivery
from evaluator_host.platform.alerts.webhooks import Webhooks
from evaluator_host.types.alerts import AlertRule, Metric
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound
from tests.jobs.alerting import Receiver, alerts_of, check
from tests.jobs.desk import OK, WORKSPACE, Desk


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

    class Deleting(Webhooks):
        async def send(self, workspace_id: str, rule: AlertRule, message: Delivery) -> str | None:
            if rule.below == 3:
                await alerts.delete_alert(WORKSPACE, "gone")
                return "no answer"
            return await super().send(workspace_id, rule, message)

    alerts = alerts_of(desk, tmp_path, webhooks=Deleting)
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

    class Held(Webhooks):
        async def send(self, workspace_id: str, rule: AlertRule, message: Delivery) -> str | None:
            if rule.url == receiver.url:
                return await super().send(workspace_id, rule, message)
            asked.append(str(rule.url))
            await released.wait()
            return "no answer"

    alerts = alerts_of(desk, tmp_path, webhooks=Held)
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
