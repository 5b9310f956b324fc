"""Adds packages and their environments to a host."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.packages.routes import environments_api, packages_api
from evaluator_host.platform.resource import Resource


class PackageResource(Resource):
    """Packages, and the environments in which they are installed."""

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        service = self.host.service
        return [*environments_api(service, access).routes, *packages_api(service).routes]


RESOURCE: Final = PackageResource
