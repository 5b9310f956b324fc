"""Adds the routes for NeMo's client to a host."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource
from evaluator_host.vendors.nemo.routes.routes import nemo_routes


class NemoResource(Resource):
    """The objects of NeMo's client: metrics, filesets, models and jobs."""

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return nemo_routes(self.host, access)


RESOURCE: Final = NemoResource
