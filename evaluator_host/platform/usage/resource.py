"""Adds to a host a route that shows the storage of workspaces."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource
from evaluator_host.platform.usage.routes import usage_api


class UsageResource(Resource):
    """The storage of workspaces on a host."""

    def routes(self, access: Access) -> Sequence[BaseRoute]:  # noqa: ARG002 - it changes nothing
        return usage_api(self.host.store.usage).routes


RESOURCE: Final = UsageResource
