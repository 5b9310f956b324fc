"""Adds data files to a host."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.data.routes import data_api
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource


class DataResource(Resource):
    """The files that evaluators read."""

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return data_api(self.host.service.data, self.host.store.usage, self.host.users, access).routes


RESOURCE: Final = DataResource
