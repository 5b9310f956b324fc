"""Adds label queues to a host."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.datasets.resource import DatasetResource
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.jobs.records import Job
from evaluator_host.platform.jobs.resource import JobResource
from evaluator_host.platform.labels.queues import LabelQueues
from evaluator_host.platform.labels.routes import labels_api
from evaluator_host.platform.labels.table import Labels
from evaluator_host.platform.resource import Resource
from evaluator_host.platform.users import UsedObject
from evaluator_host.types.evaluator import Json


class LabelResource(Resource):
    """The label queues of a host. Agreement reports of jobs get labels from them."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        jobs, datasets = host.resource(JobResource), host.resource(DatasetResource)
        self._queues = LabelQueues(
            Labels(host.store.database), jobs.service.jobs, jobs.results, jobs.rows, datasets.service, host.store.usage
        )

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return labels_api(self._queues, access).routes

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:
        """Return `label queue NAME` for each label queue with rows of this job or data set."""
        if used.kind not in ("job", "dataset"):
            return []
        return [
            f"label queue {one.name}"
            async for part in self._queues.labels.parts(workspace_id)
            for one in part
            if one.dataset_id in used.ids or (used.kind == "job" and one.job_id == used.name)
        ]

    async def labels_of(self, job: Job, queue: str | None) -> dict[int, Json]:
        return await self._queues.labels_of(job, queue)


RESOURCE: Final = LabelResource
