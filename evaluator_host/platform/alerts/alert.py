"""One alert: its rule, state and messages, and how a new value of its metric changes them."""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from evaluator_host.engine.system.adapter import Adapter
from evaluator_host.platform.store.objects import StoredObject
from evaluator_host.types.alerts import AlertReport, AlertRule, DeliveryReport, Metric
from evaluator_host.types.bounds import exceeds
from evaluator_host.types.jobs import JobReport, JobScore, JobStatus
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.numbers import exact, rounded_beside

_KEPT: Final = 20  # number of sent messages to keep: the newest are kept
WAITING: Final = 100  # maximum number of messages to keep, sent or not


@dataclass(frozen=True, slots=True)
class Delivery:
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
class Alert:
    """The stored content of an alert: its rule, its state and its messages, the newest first."""

    rule: AlertRule
    since: datetime  # jobs that ended earlier are not checked
    seen_at: datetime | None = None  # time at which the newest checked job ended
    # what `end_of` returned for the last jobs that were checked; only their ids if an older version stored the alert
    seen: tuple[str, ...] = ()
    missed_at: datetime | None = None  # time of the newest run of the schedule that created no job
    paused: bool = False
    firing: bool = False
    acknowledged: bool = False
    value: float | None = None
    checked_at: datetime | None = None
    deliveries: tuple[Delivery, ...] = ()
    unsent: int = 0  # number of messages that were dropped before they were sent


_STORED: Final = Adapter(Alert)
read_alert: Final = _STORED.read_json


@dataclass(frozen=True, slots=True)
class Sample:
    """The current value of the metric that an alert watches, and what a message about it contains.

    `out` is true if the metric is out of bounds or doubtful, or no row could be scored, and None if too few rows have a
    result.
    """

    out: bool | None
    value: float | None
    about: dict[str, Any]


def sample_of(rule: AlertRule, score: JobScore, about: dict[str, Any]) -> Sample | None:
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
        return Sample(out=True, value=value if enough else None, about=about)
    if done < rule.min_rows or (value is not None and not enough):
        return Sample(None, None, about)
    if value is None:
        return None if score.scored or not score.failed else Sample(out=True, value=None, about=about)
    if score.doubt is not None and rule.metric is not Metric.FAILURE_RATE:
        return Sample(out=True, value=value, about={**about, "doubt": score.doubt})
    out = exceeds(rule.below, value) if rule.below is not None else exceeds(value, rule.above or 0.0)
    return Sample(out, value, about)


def told(kept: Alert, name: str, sample: Sample, *, each: bool) -> Alert:
    """Return the alert with its state after this check. If the alert starts or stops firing, add a message.

    With `each`, every check that finds the metric out of bounds adds a message, even if the alert is already firing.
    """
    if sample.out is None:
        return kept
    seen = kept.acknowledged and sample.out and not each
    new = replace(kept, firing=sample.out, acknowledged=seen, value=sample.value, checked_at=datetime.now(UTC))
    if sample.out and (each or not kept.firing):
        return with_message(new, name, "alert.firing", sample.about)
    if not sample.out and kept.firing:
        return with_message(new, name, "alert.resolved", sample.about)
    return new if (new.firing, new.value) != (kept.firing, kept.value) or each else kept


def with_message(kept: Alert, name: str, type_: str, about: dict[str, Any]) -> Alert:
    now = datetime.now(UTC)
    rule = kept.rule
    bounds = {"metric": rule.metric, "below": rule.below, "above": rule.above, "value": kept.value}
    text = about.get("text") or _sentence(name, type_, kept, about)
    body = {"type": type_, "alert": name, "timestamp": now.isoformat(), **bounds, **about, "text": text}
    made = Delivery(f"msg_{secrets.token_hex(12)}", type_, encode_json(body).decode(), now, now if rule.url else None)
    every = [made, *kept.deliveries]
    wanted = [one for place, one in enumerate(every) if place < _KEPT or one.next_at is not None]
    unsent = kept.unsent + sum(one.next_at is not None for one in wanted[WAITING:])
    return replace(kept, deliveries=tuple(wanted[:WAITING]), unsent=unsent)


def _sentence(name: str, type_: str, kept: Alert, about: dict[str, Any]) -> str:
    rule = kept.rule
    watched = rule.metric.replace("_", " ")
    limit = rule.below if rule.below is not None else rule.above or 0.0
    bound = f"{'over' if rule.below is None else 'under'} {exact(limit)}"
    where = f"job {about.get('job_name') or about['job']}" if "job" in about else f"live traces of {about['live']}"
    if about.get("status") == JobStatus.FAILED:
        return f"alert {name}: {where} failed"
    is_out = bound if type_ == "alert.firing" else f"not {bound}"
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


def put(kept: Alert, delivery: Delivery) -> Alert:
    return replace(kept, deliveries=tuple(delivery if one.id == delivery.id else one for one in kept.deliveries))


def end_of(job: JobReport) -> str:
    """Return a string that identifies the latest end of a job, because a resumed job ends again."""
    return f"{job.id} {job.finished_at}"


def as_json(kept: Alert) -> str:
    return _STORED.json(kept)


def report_of(stored: StoredObject) -> AlertReport:
    kept = read_alert(stored.content)
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
