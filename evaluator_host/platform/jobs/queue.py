"""The job queue for the hosts that run jobs: a host claims a job, stores its results, sends heartbeats and releases it.

A host that runs a job owns it. Every write names the owner, so that a host that was wrongly taken for dead cannot
change a job that another host has claimed.
"""

import asyncio
import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

from sqlalchemy import and_, case, func, insert, literal, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import aliased

from evaluator_host.platform.datasets.table import DatasetTable
from evaluator_host.platform.jobs.records import DesiredState, Job
from evaluator_host.platform.jobs.schema import (
    JobEvaluatorTable,
    JobTable,
    OutputTable,
    ResultTable,
    SharedPartTable,
    TogetherTable,
)
from evaluator_host.platform.jobs.table import as_job, as_tally, select_jobs, select_tallies
from evaluator_host.platform.jobs.tallies import read_warnings, row_mark
from evaluator_host.platform.store.database import (
    Repository,
    clock,
    columns_of,
    insert_many,
    insert_unless_there,
    row_values,
)
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.json_values import decode_json, encode_json
from evaluator_host.types.numbers import sum_of
from evaluator_host.types.outcome import ModelUsage, Note, Status
from evaluator_host.types.warnings import DOUBTFUL, WarningTally

_EARLIER: Final = 20  # maximum number of earlier jobs among which to look for one whose scores can be relied on
_USED: Final = '"usage":{'  # text in the JSON of every result that used models; some other results contain it, too

_OTHER_MARK: Final = bytes.maketrans(b"\0\1", b"\1\0")


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The stored result of one row and evaluator. `metrics` and `result` are JSON."""

    position: int  # position of the evaluator in its job, from 0
    row: int  # number of the row in its data set, from 0
    status: str  # scored, skipped or failed, see `types.outcome.Status`
    score: float | None  # the row's score; None if it has none, or if it does not fit a float
    passed: bool | None
    error_code: str | None
    run_ms: float  # milliseconds in the sandbox
    metrics: str  # `{name: number}` as JSON
    # the `EvaluationResult`: complete when read from the store, but without `metrics` and the shared part when written
    result: str
    shared: int | None = None  # id of the `SharedPart`; None for a result that was stored whole


@dataclass(frozen=True, slots=True)
class SharedPart:
    """Fields that many results of a job have in common: `content` is a JSON object, `id` a hash of it."""

    id: int
    content: str


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """A model's answer to one row, or the error in its place. `output`, `error` and `log` are JSON."""

    row: int  # number of the row in its data set, from 0
    output: str | None  # the answer; None when the call failed
    error: str | None  # an `EvaluationError`; None when the call succeeded
    latency_ms: float  # milliseconds of the attempt that got an answer, or of the last attempt if none did
    log: str  # the requests that were sent, with tokens, cost and times; see `models.endpoint.Answer`


class JobQueue(Repository):
    """The job queue in the database, for the hosts that run jobs."""

    @property
    def one_machine(self) -> bool:
        """Whether the database is a file. If so, all hosts that use it are on one machine."""
        return self._database.address.file is not None

    async def waiting(self, *, each: int, besides: Collection[str] = ()) -> list[Job]:
        """Return queued jobs, oldest first, at most `each` per workspace.

        Leave out jobs that use the data sets in `besides`.
        """
        place = func.row_number().over(partition_by=JobTable.workspace_id, order_by=JobTable.created_at).label("place")
        queued = (
            select(JobTable.id, place)
            .where(JobTable.status == JobStatus.QUEUED, JobTable.dataset_id.not_in(besides))
            .subquery()
        )
        query = select_jobs().join(queued, queued.c.id == JobTable.id).where(queued.c.place <= each)
        return [as_job(row) for row in await self._database.fetch_all(query.order_by(JobTable.created_at))]

    async def running(self) -> list[Job]:
        """Return the running jobs. The host of a job counts as alive while the job's `heartbeat_at` keeps changing."""
        query = select_jobs().where(JobTable.status == JobStatus.RUNNING)
        return [as_job(row) for row in await self._database.fetch_all(query)]

    async def claim_job(self, job: Job, owner: str) -> bool:
        """Make this host the owner of a job, and count the attempt. Return False if the stored job has changed."""
        now = datetime.now(UTC)
        unchanged = (
            (JobTable.id == job.id) & (JobTable.status == job.status) & JobTable.owner.is_not_distinct_from(job.owner)
        )
        values = {"status": JobStatus.RUNNING, "owner": owner, "heartbeat_at": now, "started_at": job.started_at or now}
        values |= {"attempts": job.attempts + 1, "error": None}  # None removes the error of a job that a host paused
        return await self._database.change_rows(update(JobTable).where(unchanged).values(**values)) == 1

    async def release_job(
        self, job_id: str, owner: str, status: JobStatus, *, running_s: float = 0.0, error: str | None = None
    ) -> bool:
        """Release a job with a new status; return whether this host still owned it.

        `running_s` seconds are added to the job's running time. If the new status is paused, but a caller has just
        cancelled or resumed the job, the job is cancelled or queued instead. A job with an `error` is not queued again.
        The time of the job's end comes from the database's clock, so that jobs of several hosts are in order.
        """
        now = await self._database.now()
        values: dict[str, Any] = {"status": status, "finished_at": now if status.final else None}
        if status is JobStatus.PAUSED:
            cancelled, resumed = (JobTable.wanted == one for one in (DesiredState.CANCEL, DesiredState.RUN))
            again = JobStatus.QUEUED if error is None else JobStatus.PAUSED
            values["status"] = case((cancelled, JobStatus.CANCELLED), (resumed, again), else_=JobStatus.PAUSED)
            values["finished_at"] = case((cancelled, literal(now, JobTable.finished_at.type)))
            if error is not None:
                values["wanted"] = case((cancelled, DesiredState.CANCEL), else_=DesiredState.PAUSE)
        released = update(JobTable).where(_owned(job_id, owner))
        released = released.values(
            owner=None, heartbeat_at=None, attempts=0, error=error, running_s=JobTable.running_s + running_s, **values
        )
        async with self._database.transaction() as connection:
            owned = (await connection.execute(released)).rowcount == 1
            if owned and status is JobStatus.COMPLETED:
                await _find_previous(connection, job_id)
        return owned

    async def save(
        self,
        job_id: str,
        owner: str,
        results: Sequence[StoredResult],
        *,
        parts: Collection[SharedPart] = (),
        notes: Mapping[tuple[int, int], Sequence[Note]] | None = None,
        running_s: float = 0.0,
    ) -> DesiredState | None:
        """Write a heartbeat and any results. Return the desired state of the job, or None if another host owns the job.

        Either all results are stored or none. A second result for the same row raises an error. `parts` are the shared
        parts of the results, and `notes` their warnings, by `(position, row)`.
        """
        failed = sum(result.status == "failed" for result in results)
        size = sum(len(result.result.encode()) + len(result.metrics.encode()) for result in results)
        async with self._database.transaction() as connection:
            counts = {"done": len(results), "failed": failed, "stored_bytes": size}
            wanted = await _note(connection, job_id, owner, progress=bool(results), running_s=running_s, **counts)
            if wanted is not None and parts:
                values = [{"job_id": job_id, **row_values(part)} for part in parts]
                await connection.execute(insert_unless_there(connection, SharedPartTable), values)
            if wanted is not None and results:
                await insert_many(connection, ResultTable, results, job_id=job_id)
                await _count(connection, job_id, results, notes or {})
        return wanted

    async def save_nodes(self, job_id: str, owner: str, nodes: str) -> None:
        """Store the nodes that a job has used, as a JSON list, while this host owns the job."""
        await self._database.change_rows(update(JobTable).where(_owned(job_id, owner)).values(nodes=nodes))

    async def save_outputs(
        self, job_id: str, owner: str, outputs: Sequence[StoredOutput], *, running_s: float = 0.0
    ) -> DesiredState | None:
        """Store a model's answers and a heartbeat. Return the desired state, or None if another host owns the job."""
        size = sum(len((output.output or "").encode()) + len(output.log.encode()) for output in outputs)
        async with self._database.transaction() as connection:
            wanted = await _note(
                connection, job_id, owner, progress=bool(outputs), running_s=running_s, stored_bytes=size
            )
            if wanted is not None and outputs:
                await insert_many(connection, OutputTable, outputs, job_id=job_id)
        return wanted

    async def save_together(self, job_id: str, owner: str, position: int, result: str) -> DesiredState | None:
        """Store an evaluator's score over all rows, as JSON, unless it is already stored. Return the same as `save`."""
        values = {"job_id": job_id, "position": position, "result": result}
        async with self._database.transaction() as connection:
            wanted = await _note(connection, job_id, owner, progress=True)
            if wanted is not None and await connection.scalar(_together(job_id, position)) is None:
                await connection.execute(insert(TogetherTable), [values])
        return wanted

    async def has_together(self, job_id: str, position: int) -> bool:
        """Return whether an evaluator's score over all rows together is stored."""
        return await self._database.fetch_value(_together(job_id, position)) is not None

    async def model_usage(self, job_id: str) -> ModelUsage:
        """Return the sum of the model calls, tokens and cost in the results that are stored so far for a job."""
        table, total = ResultTable, ModelUsage()
        key = tuple_(table.position, table.row)
        query: Any = select(table.position, table.row, table.result).where(table.job_id == job_id)
        query = query.where(table.result.contains(_USED)).order_by(table.position, table.row)
        part = await self._database.fetch_part(query)
        while part:
            total += await asyncio.to_thread(_added_usage, [one.result for one in part])
            part = await self._database.fetch_part(query.where(key > (part[-1].position, part[-1].row)))
        return total

    async def unscored_rows(self, job_id: str, position: int, *, count: int) -> bytearray:
        """Return one byte for each of a job's `count` rows: 0 if the evaluator has scored the row, else 1."""
        table = ResultTable
        query = select(table.row).where(
            table.job_id == job_id, table.position == position, table.status == Status.SCORED.value
        )
        scored = await self._marks(query, table.row)
        scored.extend(bytes(count - len(scored)))
        return scored.translate(_OTHER_MARK)

    async def done_rows(self, job_id: str, position: int) -> bytearray:
        """Return one byte for each row, up to the last that has a result of the evaluator: 1 for a result, else 0."""
        query = select(ResultTable.row).where(ResultTable.job_id == job_id, ResultTable.position == position)
        return await self._marks(query, ResultTable.row)

    async def answered_rows(self, job_id: str) -> bytearray:
        """Return one byte for each row, up to the last that the model has answered: 1 for an answer, else 0."""
        return await self._marks(select(OutputTable.row).where(OutputTable.job_id == job_id), OutputTable.row)

    async def outputs(self, job_id: str, first: int, *, limit: int) -> dict[int, StoredOutput]:
        """Return at most `limit` of the model's answers, keyed by row number, starting at row `first`."""
        table = OutputTable
        query = (
            select(*columns_of(table, StoredOutput))
            .where(table.job_id == job_id, table.row >= first)
            .order_by(table.row)
            .limit(limit)
        )
        return {row[0]: StoredOutput(*row) for row in await self._database.fetch_all(query)}

    async def _marks(self, query: Any, row: Any) -> bytearray:
        numbers = await self._database.fetch_numbers(query, row)
        return await asyncio.to_thread(_marked, numbers)


async def _note(
    connection: AsyncConnection, job_id: str, owner: str, *, progress: bool, running_s: float = 0.0, **counts: int
) -> DesiredState | None:
    """Write the heartbeat, and add `counts` to the job's counters `done`, `failed` and `stored_bytes`.

    If there was `progress`, the number of attempts to run the job is set to 0.

    Return the desired state of the job, or None if another host owns the job.
    """
    changed = await connection.execute(
        update(JobTable)
        .where(_owned(job_id, owner))
        .values(
            heartbeat_at=clock(connection),
            running_s=JobTable.running_s + running_s,
            attempts=0 if progress else JobTable.attempts,
            **{name: getattr(JobTable, name) + count for name, count in counts.items()},
        )
    )
    if changed.rowcount != 1:
        return None
    return DesiredState(str(await connection.scalar(select(JobTable.wanted).where(JobTable.id == job_id))))


async def _count(
    connection: AsyncConnection,
    job_id: str,
    results: Sequence[StoredResult],
    notes: Mapping[tuple[int, int], Sequence[Note]],
) -> None:
    """Add results to their evaluators' row counts and sums of scores. The caller has locked the job."""
    table = JobEvaluatorTable
    for position in {result.position for result in results}:
        some = [result for result in results if result.position == position]
        used = [result for result in some if result.status != Status.SKIPPED]
        finite = {one.row: one.score for one in used if one.score is not None and math.isfinite(one.score)}
        scores = [*finite.values()]
        counts = {status.value: sum(result.status == status for result in some) for status in Status}
        counts |= {
            "judged": sum(result.passed is not None for result in used),
            "passed": sum(result.passed is True for result in used),
            "scores": len(scores),
            "numbers": sum(_has_number(result) for result in some),
            "scores_mark": sum(map(row_mark, finite)),
            "failed_mark": sum(row_mark(result.row) for result in some if result.status == Status.FAILED),
            "doubted": sum(_has_number(result) and _is_doubted(result, notes) for result in some),
        }
        values: dict[str, Any] = {name: getattr(table, name) + count for name, count in counts.items()}
        chosen = (table.job_id == job_id) & (table.position == position)
        told = {row: found for (of, row), found in notes.items() if of == position}
        if scores or told:
            # warnings may be long, so they are read only if new ones are added
            warnings = table.warnings if told else literal("")
            before = (await connection.execute(select(table.total, warnings.label("warnings")).where(chosen))).one()
            values["total"] = str(Fraction(before.total) + sum_of(scores))
            values |= {"warnings": _warnings_with(before.warnings, told)} if told else {}
        await connection.execute(update(table).where(chosen).values(**values))


def _has_number(result: StoredResult) -> bool:
    return result.score is not None or result.metrics != "{}"


def _is_doubted(result: StoredResult, notes: Mapping[tuple[int, int], Sequence[Note]]) -> bool:
    return any(note.code in DOUBTFUL for note in notes.get((result.position, result.row), ()))


def _warnings_with(known: str, notes: Mapping[int, Sequence[Note]]) -> str:
    """Add the warnings of more rows to `known`: JSON that says how often each warning occurred. Return the new JSON."""
    tally = WarningTally(read_warnings(known))
    for row, found in notes.items():
        tally.add(row, found)
    return encode_json(tally.counts()).decode()


async def _find_previous(connection: AsyncConnection, job_id: str) -> None:
    """For each evaluator of a completed job, store the newest earlier job with which its mean may be compared.

    This is a job that completed over the same rows, with scores that can be relied on. Two different versions of an
    evaluator match only if each of the two jobs has exactly one version that the other job does not have.
    """
    table, earlier = JobEvaluatorTable, aliased(JobEvaluatorTable)
    job, data = aliased(JobTable), aliased(DatasetTable)
    this = (
        select(JobTable.workspace_id, JobTable.rows, JobTable.created_at, DatasetTable.digest)
        .join(DatasetTable, DatasetTable.id == JobTable.dataset_id)
        .where(JobTable.id == job_id)
    )
    workspace_id, rows, created_at, digest = (await connection.execute(this)).one()
    before = (
        select(earlier.job_id, earlier.position)
        .join(job, job.id == earlier.job_id)
        .join(data, data.id == job.dataset_id)
        .where(data.workspace_id == workspace_id, data.digest == digest, job.status == JobStatus.COMPLETED)
        .where(job.rows == rows, job.created_at < created_at)
    )
    chosen = select(table.position, table.label, _identity(table)).where(table.job_id == job_id)
    evaluators = (await connection.execute(chosen)).all()
    same_name = aliased(JobEvaluatorTable)
    for position, label, identity in evaluators:
        labels = [other for _, other, one in evaluators if one == identity]
        there = select(func.count()).where(same_name.job_id == earlier.job_id, _identity(same_name) == identity)
        both = there.where(same_name.label.in_(labels)).scalar_subquery()
        only_there = there.where(same_name.label.not_in(labels)).scalar_subquery()
        other_version = and_(earlier.label.not_in(labels), only_there == 1, both == len(labels) - 1)
        fitting = before.where(_identity(earlier) == identity, or_(earlier.label == label, other_version))
        newest = fitting.order_by(job.created_at.desc(), earlier.label != label, earlier.position).limit(_EARLIER)
        found = await _first_reliable(connection, [(one[0], one[1]) for one in await connection.execute(newest)])
        if found is not None:
            values = {"previous_job": found[0], "previous_position": found[1]}
            this_one = (table.job_id == job_id) & (table.position == position)
            await connection.execute(update(table).where(this_one).values(**values))


async def _first_reliable(connection: AsyncConnection, evaluators: list[tuple[str, int]]) -> tuple[str, int] | None:
    """Return the first evaluator whose scores can be relied on. Each is given by its job's id and its position."""
    if not evaluators:
        return None
    key = tuple_(JobEvaluatorTable.job_id, JobEvaluatorTable.position)
    query = select_tallies().add_columns(JobEvaluatorTable.position).where(key.in_(evaluators))
    found = {(one.job_id, one.position): one for one in await connection.execute(query)}
    # a job may have been deleted since `evaluators` was read
    there = (one for one in evaluators if one in found)
    return next((one for one in there if as_tally(found[one]).doubt() is None), None)


def _identity(table: Any) -> Any:
    """Return an SQL expression that identifies an evaluator in different jobs: its name, or else its label."""
    return func.coalesce(table.name, table.label)


def _added_usage(results: Sequence[str]) -> ModelUsage:
    """Return the sum of the model calls, tokens and cost in these results."""
    used = (decode_json(one.encode()).get("usage") for one in results)
    return sum((ModelUsage(**one) for one in used if isinstance(one, dict)), start=ModelUsage())


def _marked(numbers: "array[int]") -> bytearray:
    """Return one byte for each number up to the last one: 1 if the number is among them, else 0."""
    marks = bytearray(numbers[-1] + 1 if numbers else 0)
    for number in numbers:
        marks[number] = 1
    return marks


def _together(job_id: str, position: int) -> Any:
    table = TogetherTable
    return select(table.job_id).where(table.job_id == job_id, table.position == position)


def _owned(job_id: str, owner: str) -> Any:
    return (JobTable.id == job_id) & (JobTable.owner == owner) & (JobTable.status == JobStatus.RUNNING)
