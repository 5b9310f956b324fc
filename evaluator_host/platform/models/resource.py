"""Adds registered models to a host."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.models.routes import model_answers_api, models_api
from evaluator_host.platform.models.service import ModelService
from evaluator_host.platform.resource import Resource
from evaluator_host.platform.users import UsedObject

_log = logging.getLogger(__name__)


class ModelResource(Resource):
    """The registered models of a host.

    The secrets resource calls this resource to find out which secrets evaluators may use.
    """

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.service = ModelService(host.settings, host.store)

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        found = models_api(self.service, self.host.users, access)
        return [*found.routes, *model_answers_api(self.service, access).routes]

    def running(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager that first logs a warning if the settings name a workspace that does not exist."""
        return self._running()

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        for problem in await self.service.directory.operator.problems():
            _log.warning("%s", problem)
        yield

    async def users_of(self, workspace_id: str, used: UsedObject) -> list[str]:
        """Return `model NAME` for each model whose key is this secret."""
        if used.kind != "secret":
            return []
        models = await self.service.directory.list(workspace_id)
        return [f"model {one.name}" for one in models if not one.operator and one.secret == used.name]

    async def code_secrets(self, workspace_id: str) -> set[str]:
        return await self.service.directory.operator.code_secrets(workspace_id)


RESOURCE: Final = ModelResource
