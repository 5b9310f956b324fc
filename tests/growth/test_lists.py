"""If there are four times as many objects, a page, look-up or clean-up costs the same, and a list of all objects costs
four times as much.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pytest
from sqlalchemy import insert

from evaluator_host.platform.datasets.table import DatasetTable
from evaluator_host.platform.evaluators.table import EvaluatorTable, EvaluatorVersionTable
from evaluator_host.platform.jobs.schema import JobEvaluatorTable, JobTable
from evaluator_host.platform.labels.table import LabelQueueTable, Labels, LabelState, LabelTable
from evaluator_host.platform.models.table import ModelAnswerTable, RecordedAnswer
from evaluator_host.platform.store.store import Store
from evaluator_host.platform.store.tables import ApiKeyTable, AuditTable, EntityTable, WorkspaceTable
from evaluator_host.platform.traces.table import Traces, TraceTable
from evaluator_host.types.jobs import JobStatus
from tests.databases import EACH_ENGINE, Databases, opened_store
from tests.growth.counted import cost, learn
from tests.store.records import WORKSPACE
from tests.tables import tables

FEW, TIMES, PAGE = 1000, 4, 20
SAME: Final = 1.5  # a cost that grows by at most this factor counts as the same
WITH_ALL: Final = 1.25 * TIMES  # maximum factor for costs that may grow with the number of objects
BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
MIDDLE: Final = FEW // 2

Rows: TypeAlias = list[tuple[Any, list[dict[str, Any]]]]
Work: TypeAlias = Callable[[Store, int], Awaitable[object]]


class Things(NamedTuple):
    """Objects of one kind: a function that makes their rows, and functions that read them.

    Functions in `same` must cost the same for any number of objects; those in `with_all` may cost more for more
    objects.
    """

    rows: Callable[[range], Rows]
    same: dict[str, Work]
    with_all: dict[str, Work]


async def parts_of(parts: AsyncIterator[object]) -> int:
    return len([part async for part in parts])


def at(number: int) -> datetime:
    return BEGIN + timedelta(minutes=number)


def first_only(numbers: range, table: Any, **values: Any) -> Rows:
    """Return a row that must be stored before the objects. If `numbers` lacks 0, return an empty list, because
    the row is stored already.
    """
    return [(table, [values])] if 0 in numbers else []


def dataset_row(number: int, **more: Any) -> dict[str, Any]:
    facts = {"format": "jsonl", "rows": 1, "bad_rows": 0, "bad_lines": "[]", "columns": "[]", "size_bytes": 1}
    return {
        **facts, "id": f"ds_{number}", "workspace_id": WORKSPACE, "name": None, "title": None, "version": 1,
        "digest": f"sha256:{number}", "created_at": at(number), **more,
    }  # fmt: skip


def job_row(number: int, **more: Any) -> dict[str, Any]:
    status = JobStatus.FAILED if number % 20 == 7 else JobStatus.COMPLETED
    return {
        "id": f"job_{number}", "workspace_id": WORKSPACE, "dataset_id": "ds_0", "dataset_name": "rows",
        "status": status, "wanted": "run", "request": "{}", "rows": 1, "done": 1, "failed": 0, "running_s": 1.0,
        "schedule": "nightly" if number % 3 == 0 else None, "created_at": at(number), "finished_at": at(number), **more,
    }  # fmt: skip


def scored_row(number: int, name: str = "exact") -> dict[str, Any]:
    place = {"job_id": f"job_{number}", "position": 0, "label": f"{name}@1", "name": name, "version": 1}
    return {**place, "digest": "sha256:00", "content": "{}"}


def evaluator_row(number: int) -> dict[str, Any]:
    times = {"created_at": at(number), "updated_at": at(number)}
    names = {"id": f"ev_{number}", "workspace_id": WORKSPACE, "name": f"exact-{number}", "description": ""}
    return {**names, "sampling": 1.0, "newest": 1, **times}


def version_row(evaluator: int, version: int) -> dict[str, Any]:
    made = {"evaluator_id": f"ev_{evaluator}", "version": version, "created_at": at(version)}
    return {**made, "digest": f"sha256:{version}", "content": "{}", "packages": "null"}


def jobs(numbers: range) -> Rows:
    return [
        *first_only(numbers, DatasetTable, **dataset_row(0, name="rows", title="rows")),
        (JobTable, [job_row(n) for n in numbers]),
        (JobEvaluatorTable, [scored_row(n) for n in numbers]),
    ]


def jobs_of_many(numbers: range) -> Rows:
    """Return one job for each workspace; the jobs with even numbers wait."""

    def queued(number: int) -> dict[str, Any]:
        status = JobStatus.COMPLETED if number % 2 else JobStatus.QUEUED
        return {"status": status, "finished_at": at(number) if number % 2 else None}

    return [
        (WorkspaceTable, [{"id": f"ws_{n}", "name": f"team-{n}", "created_at": at(n)} for n in numbers]),
        (DatasetTable, [dataset_row(n, workspace_id=f"ws_{n}") for n in numbers]),
        (JobTable, [job_row(n, workspace_id=f"ws_{n}", dataset_id=f"ds_{n}", **queued(n)) for n in numbers]),
        (JobEvaluatorTable, [scored_row(n) for n in numbers]),
    ]


def evaluators(numbers: range) -> Rows:
    versions = [version_row(n, 1) for n in numbers]
    return [(EvaluatorTable, [evaluator_row(n) for n in numbers]), (EvaluatorVersionTable, versions)]


def versions(numbers: range) -> Rows:
    made = [version_row(0, n + 1) for n in numbers]
    return [*first_only(numbers, EvaluatorTable, **evaluator_row(0)), (EvaluatorVersionTable, made)]


def datasets(numbers: range) -> Rows:
    return [(DatasetTable, [dataset_row(n, name=f"rows-{n}", title=f"rows-{n}") for n in numbers])]


def dataset_versions(numbers: range) -> Rows:
    """Return versions of one data set; a job uses each version."""
    made = [dataset_row(n, title="rows", version=n + 1) for n in numbers]
    return [(DatasetTable, made), (JobTable, [job_row(n, dataset_id=f"ds_{n}") for n in numbers])]


def traces(numbers: range) -> Rows:
    def trace(number: int) -> dict[str, Any]:
        status = "failed" if number % 20 == 7 else "scored"
        told = {"trace_id": f"{number}", "received_at": at(number), "status": status, "score": 1.0}
        return {**told, "evaluator_id": f"ev_{number % 2}", "version": 1, "result": "{}", "trace": "{}"}

    owners = [evaluator_row(n) for n in (0, 1)]
    return [*([(EvaluatorTable, owners)] if 0 in numbers else []), (TraceTable, [trace(n) for n in numbers])]


def labels(numbers: range) -> Rows:
    """Return the rows of one label queue; people have labelled the first half of the rows."""
    queue = {"id": "lq_0", "workspace_id": WORKSPACE, "name": "queue", "dataset_id": "ds_0", "created_at": BEGIN}
    labelled = {"state": LabelState.LABELLED.value, "label": "1", "note": "", "by": "ann", "at": BEGIN}
    waiting = {"state": LabelState.WAITING.value, "label": None, "note": "", "by": None, "at": None}
    done = range(numbers.start, (numbers.start + numbers.stop) // 2)
    return [
        *first_only(numbers, DatasetTable, **dataset_row(0, name="rows")),
        *first_only(numbers, LabelQueueTable, **queue, own_outputs=False, content="{}"),
        (LabelTable, [{"queue_id": "lq_0", "index": n, **(labelled if n in done else waiting)} for n in numbers]),
    ]


def audited(numbers: range) -> Rows:
    def entry(number: int) -> dict[str, Any]:
        told = {"verb": "evaluate", "rows": 1, "failed": 0, "outcome": "scored", "duration_ms": 1.0}
        return {**told, "at": at(number), "workspace_id": WORKSPACE if number % 2 else "ws_1", "key_id": "k0"}

    other = {"id": "ws_1", "name": "other", "created_at": BEGIN}
    return [*first_only(numbers, WorkspaceTable, **other), (AuditTable, [entry(n) for n in numbers])]


def objects(numbers: range) -> Rows:
    of = {"workspace_id": WORKSPACE, "kind": "schedule", "namespace": "", "content": "{}"}
    times = {"created_at": BEGIN, "updated_at": BEGIN}
    return [(EntityTable, [{"id": f"sch-{n}", "name": f"nightly-{n}", **of, **times} for n in numbers])]


def answers(numbers: range) -> Rows:
    of = {"workspace_id": WORKSPACE, "model": "judge", "content": "{}", "stored_bytes": 2}
    return [(ModelAnswerTable, [{"digest": f"{n:08}", "created_at": at(n), **of} for n in numbers])]


def keys(numbers: range) -> Rows:
    of = {"workspace_id": WORKSPACE, "token_hash": "", "created_at": BEGIN}
    return [(ApiKeyTable, [{"id": f"k{n}", "name": f"key-{n}", **of} for n in numbers])]


async def queue_of(store: Store) -> Any:
    return await Labels(store.database).get_queue(WORKSPACE, "queue")


async def counts(store: Store, _: int) -> None:
    await Labels(store.database).count_labels([await queue_of(store)])


async def take(store: Store, _: int) -> None:
    assert await Labels(store.database).take_row(await queue_of(store), "ann") is not None


async def labels_after(store: Store, count: int, state: LabelState | None) -> None:
    queue = await queue_of(store)
    found = await Labels(store.database).list_labels(queue, state=state, after=MIDDLE // 2, limit=PAGE)
    assert len(found) == PAGE


async def every_answer(store: Store, count: int) -> None:
    assert len([one async for one in tables(store).models.answers(WORKSPACE)]) >= count


def listed(**chosen: Any) -> Work:
    """Return a function that reads a page of jobs."""
    return lambda store, _: tables(store).jobs.list_overviews(WORKSPACE, limit=PAGE, **chosen)


NEW_ANSWER: Final = RecordedAnswer("new", "judge", "{}", at(10 * FEW))
KINDS: Final = {
    "jobs": Things(
        jobs,
        {
            "newest": listed(),
            "before": listed(before=at(MIDDLE)),
            "failed": listed(status=JobStatus.FAILED),
            "of a schedule": listed(schedule="nightly"),
            "found by a text": listed(search="ROWS"),
            "waiting": lambda store, _: tables(store).job_queue.waiting(each=1),
            "running": lambda store, _: tables(store).job_queue.running(),
            "over a data set": lambda store, _: tables(store).jobs.list_completed(WORKSPACE, "rows", limit=PAGE),
            "since a look": lambda store, count: tables(store).jobs.list_overviews(
                WORKSPACE, limit=PAGE, schedule="nightly", finished_after=at(count - PAGE)
            ),
        },
        {
            "found nowhere": listed(search="nothing"),
            "paused": listed(status=JobStatus.PAUSED),
            "trend": lambda store, _: tables(store).jobs.scores_of(WORKSPACE, "exact", limit=PAGE),
            "last of each": lambda store, _: tables(store).jobs.last_scores(WORKSPACE),
            "usage": lambda store, _: store.usage.get_usage(WORKSPACE),
            "old": lambda store, _: tables(store).jobs.delete_ended(BEGIN),
        },
    ),
    "jobs of many workspaces": Things(
        jobs_of_many,
        {
            "of one": lambda store, _: tables(store).jobs.list_overviews("ws_7", limit=PAGE),
            "usage of one": lambda store, _: store.usage.get_usage("ws_7"),
        },
        {
            "waiting": lambda store, _: tables(store).job_queue.waiting(each=1),
            "usage": lambda store, _: store.usage.list_usage(),
        },
    ),
    "evaluators": Things(
        evaluators,
        {"one": lambda store, _: tables(store).evaluators.get_version(WORKSPACE, "exact-7")},
        {"all": lambda store, _: parts_of(tables(store).evaluators.newest_versions(WORKSPACE))},
    ),
    "versions of an evaluator": Things(
        versions,
        {
            "newest": lambda store, _: tables(store).evaluators.get_version(WORKSPACE, "exact-0"),
            "one": lambda store, _: tables(store).evaluators.get_version(WORKSPACE, "exact-0", 7),
            "evaluators": lambda store, _: parts_of(tables(store).evaluators.newest_versions(WORKSPACE)),
        },
        {"all": lambda store, _: parts_of(tables(store).evaluators.versions(WORKSPACE, "exact-0"))},
    ),
    "data sets": Things(
        datasets,
        {
            "by name": lambda store, _: tables(store).datasets.get_dataset(WORKSPACE, "rows-7"),
            "by id": lambda store, _: tables(store).datasets.get_dataset(WORKSPACE, "ds_7"),
        },
        {
            "all": lambda store, _: parts_of(tables(store).datasets.list_datasets(WORKSPACE)),
            "unused": lambda store, _: tables(store).datasets.forget_unused(remove=str),
        },
    ),
    "versions of a data set": Things(
        dataset_versions,
        {"one": lambda store, _: tables(store).datasets.get_dataset(WORKSPACE, "rows@7")},
        {
            "all": lambda store, _: tables(store).datasets.list_versions(WORKSPACE, "rows"),
            "unused": lambda store, _: tables(store).datasets.forget_unused(remove=str),
        },
    ),
    "traces": Things(
        traces,
        {
            "newest": lambda store, _: Traces(store.database).list_traces(WORKSPACE, "exact-0", limit=PAGE),
            "before": lambda store, _: Traces(store.database).list_traces(
                WORKSPACE, "exact-0", limit=PAGE, before=MIDDLE
            ),
            "failed": lambda store, _: Traces(store.database).list_traces(
                WORKSPACE, "exact-1", limit=PAGE, status="failed"
            ),
            "of a window": lambda store, count: Traces(store.database).live_statistics(
                WORKSPACE, "exact-0", since=at(count - PAGE)
            ),
        },
        {"old": lambda store, _: Traces(store.database).delete_before(BEGIN)},
    ),
    "rows of a label queue": Things(
        labels,
        {
            "page": lambda store, count: labels_after(store, count, None),
            "page of labelled": lambda store, count: labels_after(store, count, LabelState.LABELLED),
            "page of waiting": lambda store, count: labels_after(store, count, LabelState.WAITING),
            "next": take,
        },
        {"counts": counts},
    ),
    "audit entries": Things(
        audited,
        {
            "newest": lambda store, _: store.audit.list_entries(limit=PAGE),
            "of a workspace": lambda store, _: store.audit.list_entries(limit=PAGE, workspace="other"),
            "of a key": lambda store, _: store.audit.list_entries(limit=PAGE, key="k0"),
            "since": lambda store, _: store.audit.list_entries(limit=PAGE, since=at(1)),
            "old": lambda store, _: store.audit.delete_before(BEGIN),
        },
        {},
    ),
    "schedules": Things(
        objects,
        {"one": lambda store, _: store.objects.get_object("schedule", WORKSPACE, "nightly-7")},
        {"all": lambda store, _: store.objects.list_objects("schedule")},
    ),
    "recorded answers": Things(
        answers,
        {
            "one": lambda store, _: tables(store).models.find_answer(WORKSPACE, "00000007"),
            "one more": lambda store, _: tables(store).models.add_answers(WORKSPACE, [NEW_ANSWER], most_bytes=1 << 30),
        },
        {
            "all": every_answer,
            "count": lambda store, _: tables(store).models.count_answers(WORKSPACE),
        },
    ),
    "keys": Things(
        keys,
        {"of a call": lambda store, _: store.keys.credentials(["k7"])},
        {"all": lambda store, _: store.keys.list_keys()},
    ),
}


async def add(store: Store, rows: Iterable[tuple[Any, list[dict[str, Any]]]]) -> None:
    async with store.database.transaction() as connection:
        for table, values in rows:
            await connection.execute(insert(table), values)
    await learn(store)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("engine", EACH_ENGINE)
@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_grows_faster_than_its_work(engine: str, kind: str, databases: Databases, tmp_path: Path) -> None:
    things = KINDS[kind]
    works = {**things.same, **things.with_all}
    async with opened_store(databases.make(engine), tmp_path) as store:
        await add(store, things.rows(range(FEW)))
        few = {name: await cost(store.database, lambda w=work: w(store, FEW)) for name, work in works.items()}
        await add(store, things.rows(range(FEW, TIMES * FEW)))
        many = {name: await cost(store.database, lambda w=work: w(store, TIMES * FEW)) for name, work in works.items()}
    grown = {
        name: (few[name].read, many[name].read)
        for name in works
        if many[name].read > (SAME if name in things.same else WITH_ALL) * max(few[name].read, PAGE)
    }
    assert not grown, f"these read too much (the cost with {FEW} objects and with {TIMES * FEW}): {grown}"
    assert {name for name in works if many[name].statements > TIMES * few[name].statements} == set()
