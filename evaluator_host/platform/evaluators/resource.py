"""Adds stored evaluators and ready-made judges to a host."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.evaluators.ready_judges import ready_judges_api
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry
from evaluator_host.platform.evaluators.routes import LastScores, evaluators_api
from evaluator_host.platform.evaluators.table import Evaluators
from evaluator_host.platform.evaluators.uses import code_use
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource
from evaluator_host.platform.users import UsedObject


class EvaluatorResource(Resource):
    """The stored evaluators of a host."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.registry = EvaluatorRegistry(host.service, Evaluators(host.store.database), host.store.usage)

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        found = evaluators_api(self.registry, self.host.users, access, jobs=lambda: self.host.find(LastScores))
        return [*found.routes, *ready_judges_api().routes]

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:
        """Return `evaluator NAME` for each evaluator whose newest version uses this object, such as a secret."""
        if (uses := code_use(used)) is None:
            return []
        parts = self.registry.newest_versions(workspace_id)
        return [f"evaluator {one.name}" async for part in parts for one in part if uses(one.evaluator)]


RESOURCE: Final = EvaluatorResource
