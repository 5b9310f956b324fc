"""Adds secrets to a host."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute

from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.platform.resource import Resource
from evaluator_host.platform.secrets.routes import CodeSecrets, secrets_api


class SecretResource(Resource):
    """The secrets of workspaces on a host."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.secrets = host.store.secrets

    def routes(self, access: Access) -> Sequence[BaseRoute]:
        return secrets_api(self.secrets, self.host.users, access, granted=lambda: self.host.find(CodeSecrets)).routes


RESOURCE: Final = SecretResource
