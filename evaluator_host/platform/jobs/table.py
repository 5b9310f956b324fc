"""Stores jobs: creates, lists, pauses, resumes, cancels and deletes them for users.

queued ─▶ running ─▶ completed | failed | cancelled
│    ▲
▼    │
paused (a job is also queued again when its host shuts down, or when a failed job is resumed)
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, TypeVar

import orjson
from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import aliased
from sqlalchemy.sql.functions import FunctionElement

from evaluator_host.platform.datasets.table import DatasetTable
from evaluator_host.platform.jobs.records import DesiredState, Job, JobEvaluator, JobOverview
from evaluator_host.platform.jobs.schema import (
    JobEvaluatorTable,
    JobTable,
    OutputTable,
    ResultTable,
    SharedPartTable,
    TogetherTable,
)
from evaluator_host.platform.jobs.tallies import EvaluatorTally, Tally
from evaluator_host.platform.store.database import Repository, clock, columns_of, row_values
from evaluator_host.platform.store.text_search import contains_text
from evaluator_host.types.errors import InUse, NotFound
from evaluator_host.types.jobs import Failures, JobStatus

_Made = TypeVar("_Made")


def select_jobs() -> Select[Any]:
    """Return the SQL query for all jobs. The caller adds conditions, and converts the rows with `as_job`."""
    return select(JobTable.__table__)


def as_job(row: Any, prefix: str = "") -> Job:
    """Convert a database row to a job, from the columns with names that begin with `prefix`."""
    columns = row._mapping  # noqa: SLF001 - SQLAlchemy documents this name as public
    values = {field.name: columns[prefix + field.name] for field in fields(Job)}
    return Job(**{**values, "status": JobStatus(values["status"]), "wanted": DesiredState(values["wanted"])})


class Jobs(Repository):
    """The jobs in the database.

    Every method that takes a workspace and a `job_id` raises `NotFound` if the workspace has no job with that id.
    """

    async def add_job(
        self,
        workspace_id: str,
        *,
        dataset_id: str,
        request: str,
        rows: int,
        evaluators: Sequence[JobEvaluator],
        idempotency_key: str | None = None,
        name: str | None = None,
        schedule: str | None = None,
    ) -> Job:
        """Queue a job and return it. If an earlier job has this idempotency key, return that job.

        `request` is a JSON object with `mapping`, `target` and `config`; the job scores the first `rows` rows.

        Raises:
          NotFound: the data set was removed meanwhile.
        """
        job_id = f"job_{secrets.token_hex(10)}"
        try:
            async with self._database.transaction() as connection:
                await connection.execute(
                    insert(JobTable).values(
                        id=job_id,
                        workspace_id=workspace_id,
                        dataset_id=dataset_id,
                        name=name,
                        schedule=schedule,
                        dataset_name=select(DatasetTable.title).where(DatasetTable.id == dataset_id).scalar_subquery(),
                        status=JobStatus.QUEUED,
                        wanted=DesiredState.RUN,
                        request=request,
                        idempotency_key=idempotency_key,
                        rows=rows,
                        done=0,
                        failed=0,
                        running_s=0.0,
                        created_at=datetime.now(UTC),
                    )
                )
                values = [{"job_id": job_id, **row_values(one)} for one in evaluators]
                await connection.execute(insert(JobEvaluatorTable), values)
        except IntegrityError as error:
            made = await self.find_by_idempotency_key(workspace_id, idempotency_key) if idempotency_key else None
            if made is not None:
                return made
            if await self._database.fetch_value(select(DatasetTable.id).where(DatasetTable.id == dataset_id)):
                raise
            raise NotFound("the data set was removed at the same moment; choose another one") from error
        return await self.get_job(workspace_id, job_id)

    async def find_by_idempotency_key(self, workspace_id: str, idempotency_key: str) -> Job | None:
        """Return the job that an idempotency key created, or None."""
        query = select_jobs().where(JobTable.workspace_id == workspace_id, JobTable.idempotency_key == idempotency_key)
        return next((as_job(row) for row in await self._database.fetch_all(query)), None)

    async def get_job(self, workspace_id: str, job_id: str) -> Job:
        query = select_jobs().where(JobTable.workspace_id == workspace_id, JobTable.id == job_id)
        found = await self._database.fetch_first(query)
        if found is None:
            raise _not_found(job_id)
        return as_job(found)

    async def get_overview(self, workspace_id: str, job_id: str) -> JobOverview:
        """Return a job with its scores, data set and number of model calls, using two SQL statements."""
        found = await self._overviews(_overviews((JobTable.workspace_id == workspace_id) & (JobTable.id == job_id)))
        if not found:
            raise _not_found(job_id)
        return found[0]

    async def find_overviews(self, job_ids: Collection[str]) -> list[JobOverview]:
        """Return the jobs with these ids, in any workspace, using two SQL statements."""
        return await self._overviews(_overviews(JobTable.id.in_(job_ids)))

    async def list_overviews(
        self,
        workspace_id: str | None,
        *,
        limit: int,
        before: datetime | None = None,
        after: Job | None = None,
        status: JobStatus | None = None,
        search: str | None = None,
        schedule: str | None = None,
        finished_after: datetime | None = None,
    ) -> list[JobOverview]:
        """Return the newest `limit` jobs of a workspace, or of all workspaces if None, newest first, with their scores.

        `search` is text in a job's name or id, or in the names of its data set or evaluators, in upper or lower case.
        `schedule` is the name of the schedule that created the job. `before` is the `created_at` of the last job on the
        previous page, and `after` is that job itself; jobs before it in the list are left out. `finished_after` leaves
        out jobs that ended earlier, and jobs that have not ended.
        """
        query = _overviews(true() if workspace_id is None else JobTable.workspace_id == workspace_id)
        if before is not None:
            query = query.where(JobTable.created_at < before)
        if after is not None:
            query = query.where(_older(after))
        if status is not None:
            query = query.where(JobTable.status == status)
        if schedule is not None:
            query = query.where(JobTable.schedule == schedule)
        if finished_after is not None:
            query = query.where(JobTable.finished_at > finished_after)
        if search is not None:
            texts = (JobTable.name, JobTable.id, JobTable.dataset_name, DatasetTable.name)
            labelled = exists().where(
                contains_text(JobEvaluatorTable.label, search), JobEvaluatorTable.job_id == JobTable.id
            )
            query = query.where(or_(labelled, *(contains_text(text, search) for text in texts)))
        return await self._overviews(query.order_by(JobTable.created_at.desc(), JobTable.id).limit(limit))

    async def _overviews(self, query: Select[Any]) -> list[JobOverview]:
        async with self._database.reading() as connection:
            silent = JobTable.heartbeat_at < clock(connection, before=timedelta(seconds=_SILENT_S))
            rows = (await connection.execute(query.add_columns(silent.label("silent")))).all()
            tallies = await self._tallies_of(connection, [row.id for row in rows])
        return [
            JobOverview(
                as_job(row), tallies[row.id], row.dataset, row.dataset_version, row.newest, row.asked, bool(row.silent)
            )
            for row in rows
        ]

    async def _tallies_of(
        self, connection: AsyncConnection, job_ids: Sequence[str]
    ) -> dict[str, tuple[EvaluatorTally, ...]]:
        """Return a dict from the id of each job to its evaluators, in the order of the job."""
        table = JobEvaluatorTable
        found: dict[str, list[EvaluatorTally]] = {job_id: [] for job_id in job_ids}
        query = select_tallies().where(table.job_id.in_(job_ids)).order_by(table.job_id, table.position)
        for tally in await _converted((await connection.execute(query)).all(), as_tally):
            found[tally.job_id].append(tally)
        return {job_id: tuple(tallies) for job_id, tallies in found.items()}

    async def scores_of(
        self, workspace_id: str, evaluator: str, *, dataset: str | None = None, limit: int
    ) -> list[tuple[Job, EvaluatorTally]]:
        """Return the completed jobs that ran a stored evaluator, newest first, each with the scores of that evaluator.

        The `request` of these jobs has only its `config`, since mappings and prompts can be long.
        `dataset` is the name that the data set had when the job was created.
        """
        chosen = (JobTable.workspace_id == workspace_id) & (JobEvaluatorTable.name == evaluator)
        query = _scored(chosen & (JobTable.status == JobStatus.COMPLETED))
        if dataset is not None:
            query = query.where(JobTable.dataset_name == dataset)
        query = query.order_by(*_NEWEST_FIRST).limit(limit)
        return await _converted(await self._database.fetch_all(query), _job_and_tally)

    async def last_scores(self, workspace_id: str) -> list[tuple[Job, EvaluatorTally]]:
        """Return the newest job that ran each stored evaluator (ended or not), and the evaluator's scores in that job.

        The `request` of these jobs has only its `config`, since mappings and prompts can be long.
        """
        table = JobEvaluatorTable
        place = func.row_number().over(partition_by=table.name, order_by=_NEWEST_FIRST).label("place")
        placed = select(table.job_id, table.position, place).join(JobTable, JobTable.id == table.job_id)
        placed = placed.where(JobTable.workspace_id == workspace_id, table.name.is_not(None))
        last = placed.subquery()
        query = _scored(last.c.place == 1).join(
            last, (last.c.job_id == table.job_id) & (last.c.position == table.position)
        )
        return await _converted(await self._database.fetch_all(query), _job_and_tally)

    async def list_completed(
        self, workspace_id: str, dataset: str, *, limit: int, after: Job | None = None
    ) -> list[tuple[Job, tuple[EvaluatorTally, ...]]]:
        """Return the completed jobs over the data set with this name, newest first, and their evaluators' scores.

        `after` is the last job of the previous page.
        """
        chosen = select_jobs().where(JobTable.workspace_id == workspace_id, JobTable.dataset_name == dataset)
        chosen = chosen.where(JobTable.status == JobStatus.COMPLETED)
        if after is not None:
            chosen = chosen.where(_older(after))
        async with self._database.reading() as connection:
            newest = chosen.order_by(JobTable.created_at.desc(), JobTable.id).limit(limit)
            jobs = [as_job(row) for row in await connection.execute(newest)]
            tallies = await self._tallies_of(connection, [job.id for job in jobs])
        return [(job, tallies[job.id]) for job in jobs]

    async def rename_job(self, workspace_id: str, job_id: str, name: str | None) -> None:
        """Rename a job, or remove its name."""
        chosen = (JobTable.workspace_id == workspace_id) & (JobTable.id == job_id)
        if not await self._database.change_rows(update(JobTable).where(chosen).values(name=name)):
            raise _not_found(job_id)

    async def evaluators(self, job_id: str) -> list[JobEvaluator]:
        """Return the evaluators of a job, in the order of its request."""
        table = JobEvaluatorTable
        query = select(*columns_of(table, JobEvaluator))
        rows = await self._database.fetch_all(query.where(table.job_id == job_id).order_by(table.position))
        return [JobEvaluator(*row) for row in rows]

    async def set_desired_state(
        self, workspace_id: str, job_id: str, wanted: DesiredState, *, request: str | None = None
    ) -> Job:
        """Set whether a job should run, pause or stop, and return the job. A job that no host runs changes at once.

        A failed job is queued again, to score the rows that have no result. If `request` is given, it replaces the
        job's request.

        Raises:
          InUse: the job has ended; only a failed job may run again.
        """
        now = datetime.now(UTC)
        job = await self.get_job(workspace_id, job_id)
        if job.status is JobStatus.FAILED and wanted is DesiredState.RUN:
            again: dict[str, Any] = {"status": JobStatus.QUEUED, "wanted": wanted, "attempts": 0}
            again |= {"finished_at": None, "error": None, "request": request or job.request}
            failed = (JobTable.id == job_id) & (JobTable.status == JobStatus.FAILED)
            if await self._database.change_rows(update(JobTable).where(failed).values(**again)):
                return await self.get_job(workspace_id, job_id)
            job = await self.get_job(workspace_id, job_id)  # the job has just been resumed, or its deletion has begun
        if job.status.final:
            raise InUse(f"the job has ended ({job.status}); create a new one")
        idle: dict[DesiredState, dict[str, Any]] = {
            DesiredState.RUN: {"status": JobStatus.QUEUED},
            DesiredState.PAUSE: {"status": JobStatus.PAUSED},
            DesiredState.CANCEL: {"status": JobStatus.CANCELLED, "finished_at": now},
        }
        this = (JobTable.id == job_id) & JobTable.status.in_(_UNENDED)
        async with self._database.transaction() as connection:
            await connection.execute(update(JobTable).where(this).values(wanted=wanted))
            unowned = this & (JobTable.status != JobStatus.RUNNING)
            await connection.execute(update(JobTable).where(unowned).values(**idle[wanted]))
        return await self.get_job(workspace_id, job_id)

    async def delete_job(self, workspace_id: str, job_id: str) -> None:
        """Delete a job that has ended, and its results.

        Raises:
          InUse: the job has not ended.
        """
        job = await self.get_job(workspace_id, job_id)
        if not await self._delete(job.id, job.finished_at):
            job = await self.get_job(workspace_id, job_id)
            raise InUse(f"the job is {job.status}; cancel it first")
        await self._database.give_space_back()

    async def delete_ended(self, before: datetime) -> int:
        """Delete the jobs that ended before a time, and their results. Return how many jobs were deleted."""
        # requests are not read, because each may have megabytes
        ended = select(JobTable.id, JobTable.finished_at).where(JobTable.finished_at < before)
        deleted = [await self._delete(*job) for job in await self._database.fetch_all(ended)].count(True)
        if deleted:
            await self._database.give_space_back()
        return deleted

    async def _delete(self, job_id: str, finished_at: datetime | None) -> bool:
        """Delete a job in several steps, its results first, so that no other writer waits long.

        Return False if the job has not ended, or has run again since. The job is cancelled first: if the host stops
        before the last step, the counts of the job no longer fit its results, so the job may not run again.
        """
        ended = (JobTable.id == job_id) & JobTable.status.not_in(_UNENDED) & (JobTable.finished_at == finished_at)
        cancelled = {"status": JobStatus.CANCELLED, "error": _BEING_DELETED}
        if not await self._database.change_rows(update(JobTable).where(ended).values(**cancelled)):
            return False
        positions = select(JobEvaluatorTable.position).where(JobEvaluatorTable.job_id == job_id)
        for position in await self._database.fetch_values(positions):
            chosen = (ResultTable.job_id == job_id) & (ResultTable.position == position)
            await self._database.delete_rows(ResultTable.__table__, chosen, at_once=_DELETED_AT_ONCE)
        answers = OutputTable.job_id == job_id
        await self._database.delete_rows(OutputTable.__table__, answers, at_once=_DELETED_AT_ONCE)
        async with self._database.transaction() as connection:
            for other in (SharedPartTable, JobEvaluatorTable):
                await connection.execute(delete(other).where(other.job_id == job_id))
            await connection.execute(delete(JobTable).where(JobTable.id == job_id))
        return True


def _overviews(chosen: ColumnElement[bool]) -> Select[Any]:
    asked = select(func.count()).where(OutputTable.job_id == JobTable.id).scalar_subquery()
    dataset = func.coalesce(DatasetTable.name, DatasetTable.id)
    newest = aliased(DatasetTable)
    query = select(
        JobTable.__table__,
        dataset.label("dataset"),
        case((newest.id.is_not(None), DatasetTable.version)).label("dataset_version"),
        newest.version.label("newest"),
        asked.label("asked"),
    )
    same = (newest.workspace_id == DatasetTable.workspace_id) & (newest.name == DatasetTable.title)
    query = query.join(DatasetTable, DatasetTable.id == JobTable.dataset_id).outerjoin(newest, same)
    return query.where(chosen)


_FAILED: Final = '{"status":"failed"'  # how the JSON of a failed result begins
# text in the request of every job that counts failed rows as 0; some other requests contain it, too
_ZERO: Final = '"failures":"zero"'


class _OnlyConfig(FunctionElement[str]):
    """An SQL expression for the `config` of a job's request, as a JSON object. The rest of the request is not sent."""

    inherit_cache = True
    type = Text()


@compiles(_OnlyConfig)
def _only_config(element: Any, compiler: Any, **more: Any) -> str:
    request = compiler.process(element.clauses, **more)
    return f"json_object('config', json(coalesce(json_extract({request}, '$.config'), '{{}}')))"


@compiles(_OnlyConfig, "postgresql")
def _only_config_of_postgresql(element: Any, compiler: Any, **more: Any) -> str:
    request = compiler.process(element.clauses, **more)
    # PostgreSQL refuses JSON with an escaped NUL or half of a surrogate pair, so all escapes are replaced; the strings
    # in `config` have none
    plain = rf"regexp_replace({request}, '\\(u[0-9a-fA-F]{{4}}|.)', '?', 'g')"
    return f"json_build_object('config', coalesce(CAST({plain} AS JSON) -> 'config', '{{}}'))::text"


@cache  # cached, because building the query takes a millisecond, as much as reading a job
def select_tallies() -> Select[Any]:
    """Return the query for the evaluators of jobs, each with its row counts in the job and in its previous job."""
    table, before, job_before = JobEvaluatorTable, aliased(JobEvaluatorTable), aliased(JobTable)
    chosen = (job_before.id == table.previous_job) & job_before.request.contains(_ZERO)
    zero = select(_OnlyConfig(job_before.request)).where(chosen).scalar_subquery()
    earlier = [column.label(f"before_{column.key}") for column in columns_of(before, Tally)]
    together = exists().where(TogetherTable.job_id == table.job_id, TogetherTable.position == table.position)
    failed = together.where(TogetherTable.result.startswith(_FAILED))
    names = (table.job_id, table.label, table.name, table.version, table.previous_job)
    query = select(*names, together.label("together"), failed.label("failed_together"), zero.label("maybe_zero"))
    return query.add_columns(*columns_of(table, Tally), *earlier).outerjoin(
        before, (before.job_id == table.previous_job) & (before.position == table.previous_position)
    )


def _scored(chosen: ColumnElement[bool]) -> Select[Any]:
    """Return the query for `chosen` evaluators with their counts and jobs. Columns of jobs have the prefix `job__`."""
    shown = {JobTable.request: _OnlyConfig(JobTable.request)}
    jobs = [shown.get(column, column).label(f"job__{column.key}") for column in columns_of(JobTable, Job)]
    query = select_tallies().add_columns(*jobs).join(JobTable, JobTable.id == JobEvaluatorTable.job_id)
    return query.where(chosen)


def _older(job: Job) -> ColumnElement[bool]:
    """Return the condition for jobs that come after `job` in a list with the newest job first."""
    same = (JobTable.created_at == job.created_at) & (JobTable.id > job.id)
    return or_(JobTable.created_at < job.created_at, same)


async def _converted(rows: Sequence[Any], convert: Callable[[Any], _Made]) -> list[_Made]:
    """Convert database rows, in a thread if there are many: a job may have a hundred evaluators."""
    if len(rows) <= _FEW_ROWS:
        return [convert(row) for row in rows]
    return await asyncio.to_thread(lambda: [convert(row) for row in rows])


def _job_and_tally(row: Any) -> tuple[Job, EvaluatorTally]:
    return as_job(row, "job__"), as_tally(row)


def as_tally(row: Any) -> EvaluatorTally:
    """Convert a row that `select_tallies` reads."""
    names = [field.name for field in fields(Tally)]
    before = None if row.before_scored is None else Tally(*(getattr(row, f"before_{name}") for name in names))
    tally = Tally(*(getattr(row, name) for name in names))
    failed = bool(row.failed_together)
    scored = bool(row.together) and not failed
    request = None if row.maybe_zero is None else orjson.loads(row.maybe_zero)
    zero = request is not None and request.get("config", {}).get("failures") == Failures.ZERO
    return EvaluatorTally(row[0], row[1], row[2], row[3], tally, row.previous_job, before, scored, failed, zero)


def _not_found(job_id: str) -> NotFound:
    return NotFound(f"there is no job {job_id[:80]}; `evaluator-host jobs list` lists the ids")


_NEWEST_FIRST: Final = (JobTable.created_at.desc(), JobTable.id, JobEvaluatorTable.position)
_BEING_DELETED: Final = (
    '{"code":"deleted","message":"the job is being deleted; if the host stopped meanwhile, delete it again"}'
)
_FEW_ROWS: Final = 200  # rows that take less than 10 ms to convert
_DELETED_AT_ONCE: Final = 2000  # number of rows to delete at once
_SILENT_S: Final = 10.0  # seconds without a heartbeat after which a job's speed is unknown
_UNENDED: Final = (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.PAUSED)
