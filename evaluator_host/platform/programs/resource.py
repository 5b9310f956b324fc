"""Adds to a host a route that runs programs."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.programs.routes import programs_api
from evaluator_host.platform.resource import Resource


class ProgramResource(Resource):
    """Programs, which a host runs once and does not store."""

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return programs_api(self.host.service, access).routes


RESOURCE: Final = ProgramResource
