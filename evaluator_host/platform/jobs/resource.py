"""Adds jobs to a host."""

from collections.abc import Iterable, Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.datasets.resource import DatasetResource
from evaluator_host.platform.evaluators.resource import EvaluatorResource
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.jobs.ended import ended_jobs
from evaluator_host.platform.jobs.estimates import JobEstimates
from evaluator_host.platform.jobs.opening import model_access, scheduler_of
from evaluator_host.platform.jobs.output_table import Outputs
from evaluator_host.platform.jobs.results.compared_jobs import JobComparisons
from evaluator_host.platform.jobs.results.exports import JobExports
from evaluator_host.platform.jobs.results.results import HumanLabels, JobResults
from evaluator_host.platform.jobs.results.routes import job_results_api
from evaluator_host.platform.jobs.results.row_reader import RowReader
from evaluator_host.platform.jobs.results.table import Results
from evaluator_host.platform.jobs.routes import jobs_api, scores_api
from evaluator_host.platform.jobs.service import JobRunner, JobService
from evaluator_host.platform.jobs.table import Jobs
from evaluator_host.platform.models.table import ModelTable
from evaluator_host.platform.resource import Kept, Resource, Task
from evaluator_host.types.jobs import EvaluatorScore


class JobResource(Resource):
    """The jobs of a host.

    If the host was given a `JobRunner`, that runner runs the jobs. Otherwise a scheduler in this process runs them.
    """

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        store, settings, service = host.store, host.settings, host.service
        datasets_of_host = host.resource(DatasetResource)
        folder, datasets = datasets_of_host.folder, datasets_of_host.service.store
        jobs, results, outputs = Jobs(store.database), Results(store.database), Outputs(store.database)
        self._runner = host.find(JobRunner) or scheduler_of(service, store)
        self.service = JobService(
            service,
            jobs,
            outputs,
            datasets,
            folder=folder,
            runner=self._runner,
            resolve=host.resource(EvaluatorResource).registry.resolve,
            usage=store.usage,
            models=model_access(settings, store),
        )
        ended_jobs(service.metrics)  # creates the metric's series before the first job ends
        self.results = JobResults(
            jobs, results, datasets, folder, service.processes, labels=lambda: host.find(HumanLabels)
        )
        self._comparisons = JobComparisons(jobs, results, datasets, folder, service.processes)
        self.rows = RowReader(jobs, results, datasets, folder, service.processes, outputs)
        self._estimates = JobEstimates(
            self.service, self.results, ModelTable(store.database), settings.model_day, store.limits
        )
        self._exports = JobExports(self.results, self.rows)

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return [
            *jobs_api(self.service, self._estimates, self.host.users, access).routes,
            *scores_api(self.service).routes,
            *job_results_api(self.results, self._comparisons, self.rows, self._exports).routes,
        ]

    def tasks(self) -> Iterable[Task]:
        return (Task("the scheduler of jobs", self._runner.run),)

    def kept(self) -> Iterable[Kept]:
        return (Kept("ended jobs", self.host.settings.jobs_days, self.service.delete_ended),)

    async def dataset_of_job(self, workspace_id: str, job_id: str) -> str:
        return (await self.service.get_job(workspace_id, job_id)).dataset

    async def last_scores(self, workspace_id: str) -> dict[str, EvaluatorScore]:
        return await self.service.last_scores(workspace_id)


RESOURCE: Final = JobResource
