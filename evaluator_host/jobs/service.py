"""The verbs of jobs, for whoever asks: made, watched, asked to pause, go on or stop, removed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeAlias

from evaluator_host.datasets.files import RowsFolder
from evaluator_host.evaluators.registry import Found
from evaluator_host.jobs.reports import job_report
from evaluator_host.jobs.scheduler import Scheduler
from evaluator_host.jobs.spec import JobRequest, evaluator_to_json, label_of, request_from_json, request_to_json
from evaluator_host.model.errors import InvalidPin, InvalidRequest, Problem
from evaluator_host.model.evaluator import Evaluator, Json
from evaluator_host.models.access import Models
from evaluator_host.schemas.jobs import JobConfig, JobReport, JobStatus, Target
from evaluator_host.service import Service
from evaluator_host.service.prepared import evaluator_digest, require_fit
from evaluator_host.store.datasets import Dataset, Datasets, new_dataset_id
from evaluator_host.store.job import Job, JobEvaluator, Wanted
from evaluator_host.store.jobs import Jobs

LOOK_EVERY_S: Final = 0.5  # at a job that somebody watches

Find: TypeAlias = Callable[[str, str], Awaitable[Found]]
"""From a workspace's id and a reference (`exact-match`, `exact-match@3`) to the evaluator; raises NotFound."""


@dataclass(frozen=True, slots=True)
class JobOrder:
    """What a caller asks for.

    Attributes:
      evaluators: Pasted ones, and references to stored ones.
      dataset: A data set's name, or the rows themselves.
      mapping: Row fields by column or template, see `datasets.mapping`.
      target: What makes the outputs first.
      config: Pace.
    """

    evaluators: Sequence[Evaluator | str]
    dataset: str | Sequence[dict[str, Json]]
    mapping: dict[str, str] = field(default_factory=dict)
    target: Target | None = None
    config: JobConfig = field(default_factory=JobConfig)


class JobBoard:
    """The jobs of one host."""

    def __init__(
        self,
        service: Service,
        jobs: Jobs,
        datasets: Datasets,
        folder: RowsFolder,
        scheduler: Scheduler,
        find: Find,
        models: Models | None = None,
    ) -> None:
        self._service = service
        self._jobs = jobs
        self._datasets = datasets
        self._folder = folder
        self._scheduler = scheduler
        self._find = find
        self._models = models

    async def create(self, order: JobOrder, workspace_id: str, *, idempotency_key: str | None = None) -> JobReport:
        """Queue a job; with an idempotency key that was used before, return the job that it made then.

        Raises:
          InvalidRequest: an evaluator, the mapping or the data cannot be taken.
          InvalidPin: a package is not pinned exactly.
          NotFound: there is no such evaluator or data set.
        """
        if idempotency_key is not None:
            made = await self._jobs.find(workspace_id, idempotency_key)
            if made is not None:
                return await self._report(made)
        request = JobRequest(order.mapping, order.target, order.config)
        request.sources()
        await self._require_target(order, workspace_id)
        evaluators: list[JobEvaluator] = []
        for given in order.evaluators:
            evaluators.append(await self._evaluator(given, workspace_id, before=evaluators))
        if not evaluators:
            raise InvalidRequest("a job needs an evaluator", problems=(Problem("evaluators", "the list is empty"),))
        dataset = await self._dataset(order.dataset, workspace_id)
        job = await self._jobs.add(
            workspace_id,
            dataset_id=dataset.id,
            request=request_to_json(request),
            rows=min(dataset.facts.rows, order.config.limit_samples or dataset.facts.rows),
            evaluators=evaluators,
            idempotency_key=idempotency_key,
        )
        self._scheduler.wake()
        return await self._report(job)

    async def get(self, workspace_id: str, job_id: str) -> JobReport:
        """Return a job.

        Raises:
          NotFound: the workspace has none of that id.
        """
        return await self._report(await self._jobs.get(workspace_id, job_id))

    async def list(
        self, workspace_id: str, *, limit: int = 100, before: datetime | None = None, status: JobStatus | None = None
    ) -> list[JobReport]:
        """Return jobs, the newest first; `before` is `created_at` of the last one of the page before."""
        jobs = await self._jobs.newest(workspace_id, limit=limit, before=before, status=status)
        return [await self._report(job) for job in jobs]

    async def watch(self, workspace_id: str, job_id: str) -> AsyncGenerator[JobReport, None]:
        """Yield a job whenever it has changed, the first time at once, until it has ended.

        Raises:
          NotFound: the workspace has none of that id.
        """
        said: JobReport | None = None
        while True:
            report = await self.get(workspace_id, job_id)
            if report != said:
                yield report
            if report.status.final:
                return
            said = report
            await asyncio.sleep(LOOK_EVERY_S)

    async def want(self, workspace_id: str, job_id: str, wanted: Wanted) -> JobReport:
        """Ask a job to pause, go on or stop.

        Raises:
          NotFound: the workspace has none of that id.
          InUse: it has ended.
        """
        job = await self._jobs.want(workspace_id, job_id, wanted)
        self._scheduler.obey(job_id, wanted)
        self._scheduler.wake()
        return await self._report(job)

    async def delete(self, workspace_id: str, job_id: str) -> None:
        """Remove a job that has ended, its results, and the rows that nothing else needs.

        Raises:
          NotFound: the workspace has none of that id.
          InUse: it has not ended.
        """
        await self._jobs.delete(workspace_id, job_id)
        for dataset_id in await self._datasets.forget_unused():
            await asyncio.to_thread(self._folder.remove, dataset_id)

    async def _evaluator(
        self, given: Evaluator | str, workspace_id: str, *, before: Sequence[JobEvaluator]
    ) -> JobEvaluator:
        position, taken = len(before), {one.label for one in before}
        named = await self._find(workspace_id, given) if isinstance(given, str) else Found(given, None)
        evaluator = named.evaluator
        try:
            require_fit(evaluator, self._service.settings)
        except InvalidRequest as error:
            problems = (
                replace(one, field=f"evaluators.{position}.{one.field.removeprefix('evaluator.')}")
                for one in error.problems
            )
            raise InvalidRequest(error.detail, problems=tuple(problems)) from error
        if evaluator.python is not None:
            await self._service.environments.queries.python(evaluator.python)
        if evaluator.packages:
            try:
                await self._service.environments.queries.parse(evaluator.packages, evaluator.language)
            except InvalidPin as error:
                problems = (replace(one, field=f"evaluators.{position}.{one.field}") for one in error.problems)
                raise InvalidPin(error.detail, problems=tuple(problems)) from error
        digest = evaluator_digest(evaluator)
        named_so = f"{evaluator.name}@{evaluator.version}"
        label = named_so if evaluator.name else label_of(evaluator, position, taken=taken)
        return JobEvaluator(
            position=position,
            label=label,
            name=evaluator.name,
            version=evaluator.version,
            digest=digest,
            content=evaluator_to_json(evaluator),
            lock=named.lock,
        )

    async def _require_target(self, order: JobOrder, workspace_id: str) -> None:
        if order.target is None:
            return
        if self._models is None:
            raise InvalidRequest("this host asks no models")
        if "outputs" in order.mapping or "trace" in order.mapping:
            message = "outputs and trace come from the target's model; map other fields only"
            raise InvalidRequest(message, problems=(Problem("mapping", message),))
        await self._models.require(order.target, workspace_id)

    async def _dataset(self, given: str | Sequence[dict[str, Json]], workspace_id: str) -> Dataset:
        if isinstance(given, str):
            return await self._datasets.get(workspace_id, given)
        dataset_id = new_dataset_id()
        ceiling = self._service.settings.body_mb << 20
        facts = await asyncio.to_thread(
            self._folder.write, dataset_id, enumerate(given, start=1), format_="json", max_bytes=2 * ceiling
        )
        return await self._datasets.add(dataset_id, workspace_id, None, facts)

    async def _report(self, job: Job) -> JobReport:
        dataset = await self._datasets.get(job.workspace_id, job.dataset_id)
        generated = None
        if self._models is not None and request_from_json(job.request).target is not None:
            generated, _ = await self._models.outputs.count(job.id)
        return job_report(job, await self._jobs.evaluators(job.id), dataset, generated=generated)
