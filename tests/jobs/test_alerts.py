"""Alerts fire for metrics out of bounds, once, and say when they are good again, with a real database."""

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import update

from evaluator_host.platform.alerts.commands import _state
from evaluator_host.platform.alerts.service import Alerts
from evaluator_host.platform.jobs import queue
from evaluator_host.platform.jobs.records import DesiredState
from evaluator_host.platform.jobs.schema import JobEvaluatorTable
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.schedules.service import Schedules
from evaluator_host.platform.store.objects import StoredObject
from evaluator_host.types.alerts import AlertReport, AlertRule, Metric
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import JobConfig
from tests.jobs.alerting import MONDAYS, ROWS, SPEC, Receiver, alerts_of, check
from tests.jobs.desk import OK, ON_EACH_DATABASE, WORKSPACE, Desk
from tests.tables import tables


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
    made = await alerts.add_alert(WORKSPACE, "low", AlertRule(Metric.MEAN, job=job.id, below=2))
    shown = replace(made, checked_at=made.created_at)
    assert [_state(one) for one in (made, shown, replace(made, paused=True))] == [
        "not checked yet",
        "ok",
        "not checked",
    ]
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
    [text] = await counted(desk, alerts, GOOD)
    assert text.startswith("alert.resolved alert low: the mean of evaluator 1 is 0.9, not under 0.5, in job run")


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
