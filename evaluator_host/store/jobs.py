"""Stores jobs for their users: creates, lists, pauses, resumes, cancels and deletes them."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from evaluator_host.model.errors import InUse, NotFound
from evaluator_host.schemas.jobs import JobStatus
from evaluator_host.store.database import Database
from evaluator_host.store.job import DesiredState, Job, JobEvaluator, JobOverview, as_job, select_jobs
from evaluator_host.store.tables import DatasetTable, JobEvaluatorTable, JobTable, OutputTable, ResultTable


def new_job_id() -> str:
    """Return a random id."""
    return f"job_{secrets.token_hex(10)}"


class Jobs:
    """The jobs of one host, or of several over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_job(
        self,
        workspace_id: str,
        *,
        dataset_id: str,
        request: str,
        rows: int,
        evaluators: Sequence[JobEvaluator],
        idempotency_key: str | None = None,
    ) -> Job:
        """Queue a job and return it; an idempotency key that was used before returns the earlier job.

        Args:
          workspace_id: Owner of the job.
          dataset_id: The data set to score.
          request: Mapping, target and config as JSON.
          rows: Rows to score, from the first on.
          evaluators: In order of their positions.
          idempotency_key: Chosen by the caller.
        """
        job_id = new_job_id()
        try:
            async with self._database.transaction() as connection:
                await connection.execute(
                    insert(JobTable).values(
                        id=job_id,
                        workspace_id=workspace_id,
                        dataset_id=dataset_id,
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
                values = [{"job_id": job_id, **_evaluator_values(one)} for one in evaluators]
                await connection.execute(insert(JobEvaluatorTable), values)
        except IntegrityError:
            made = await self.find_by_idempotency_key(workspace_id, idempotency_key) if idempotency_key else None
            if made is None:
                raise
            return made
        return await self.get_job(workspace_id, job_id)

    async def find_by_idempotency_key(self, workspace_id: str, idempotency_key: str) -> Job | None:
        """Return the job that an idempotency key created, or None."""
        query = select_jobs().where(JobTable.workspace_id == workspace_id, JobTable.idempotency_key == idempotency_key)
        async with self._database.reading() as connection:
            return next((as_job(row) for row in await connection.execute(query)), None)

    async def get_job(self, workspace_id: str, job_id: str) -> Job:
        """Return a job.

        Raises:
          NotFound: the workspace has no job of that id.
        """
        query = select_jobs().where(JobTable.workspace_id == workspace_id, JobTable.id == job_id)
        async with self._database.reading() as connection:
            found = next((as_job(row) for row in await connection.execute(query)), None)
        if found is None:
            raise _not_found(job_id)
        return found

    async def get_overview(self, workspace_id: str, job_id: str) -> JobOverview:
        """Return a job with its labels, data set and model calls, in two statements.

        Raises:
          NotFound: the workspace has no job of that id.
        """
        found = await self._overviews(_overviews(workspace_id).where(JobTable.id == job_id))
        if not found:
            raise _not_found(job_id)
        return found[0]

    async def list_overviews(
        self, workspace_id: str, *, limit: int, before: datetime | None = None, status: JobStatus | None = None
    ) -> list[JobOverview]:
        """Return jobs of a workspace, the newest first, in two statements however many there are.

        Args:
          workspace_id: Owner of the jobs.
          limit: Most jobs to return.
          before: `created_at` of the last job of the previous page.
          status: Only jobs of this status.
        """
        query = _overviews(workspace_id)
        if before is not None:
            query = query.where(JobTable.created_at < before)
        if status is not None:
            query = query.where(JobTable.status == status)
        return await self._overviews(query.order_by(JobTable.created_at.desc(), JobTable.id).limit(limit))

    async def _overviews(self, query: Select[Any]) -> list[JobOverview]:
        table = JobEvaluatorTable
        labels: dict[str, list[str]] = {}
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).all()
            wanted = table.job_id.in_([row.id for row in rows])
            labelled = select(table.job_id, table.label).where(wanted).order_by(table.job_id, table.position)
            for job_id, label in await connection.execute(labelled):
                labels.setdefault(job_id, []).append(label)
        return [JobOverview(as_job(row), tuple(labels.get(row.id, ())), row.dataset, row.asked) for row in rows]

    async def evaluators(self, job_id: str) -> list[JobEvaluator]:
        """Return the evaluators of a job, in order."""
        table = JobEvaluatorTable
        query = select(
            *(table.position, table.label, table.name, table.version, table.digest, table.content, table.lock)
        )
        async with self._database.reading() as connection:
            rows = await connection.execute(query.where(table.job_id == job_id).order_by(table.position))
            return [JobEvaluator(*row) for row in rows]

    async def set_desired_state(self, workspace_id: str, job_id: str, wanted: DesiredState) -> Job:
        """Ask a job to run, pause or stop, and return it; a job that no host runs changes at once.

        Raises:
          NotFound: the workspace has no job of that id.
          InUse: the job has ended.
        """
        now = datetime.now(UTC)
        job = await self.get_job(workspace_id, job_id)
        if job.status.final:
            raise InUse(f"the job has ended ({job.status}); make a new one")
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
          NotFound: the workspace has no job of that id.
          InUse: the job has not ended.
        """
        job = await self.get_job(workspace_id, job_id)
        if not job.status.final:
            raise InUse(f"the job is {job.status}; cancel it first")
        async with self._database.transaction() as connection:
            for table in (ResultTable, OutputTable, JobEvaluatorTable):  # children first: no cascade in one statement
                await connection.execute(delete(table).where(table.job_id == job_id))
            await connection.execute(delete(JobTable).where(JobTable.id == job_id))


def _overviews(workspace_id: str) -> Select[Any]:
    asked = select(func.count()).where(OutputTable.job_id == JobTable.id).scalar_subquery()
    dataset = func.coalesce(DatasetTable.name, DatasetTable.id)
    query = select(JobTable.__table__, dataset.label("dataset"), asked.label("asked"))
    return query.join(DatasetTable, DatasetTable.id == JobTable.dataset_id).where(JobTable.workspace_id == workspace_id)


def _not_found(job_id: str) -> NotFound:
    return NotFound(f"there is no job {job_id[:80]}; `evaluator-host jobs list` has their ids")


_UNENDED = (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.PAUSED)


def _evaluator_values(evaluator: JobEvaluator) -> dict[str, Any]:
    names = ("position", "label", "name", "version", "digest", "content", "lock")
    return {name: getattr(evaluator, name) for name in names}
