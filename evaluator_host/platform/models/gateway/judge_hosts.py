"""Decides which hosts may be called for models that evaluators use.

The setting EVALUATOR_HOST_JUDGE_HOSTS lists these hosts. If it is not set, the user of a host without keys can allow
further hosts in the workbench. Only programs on the same machine reach such a host, and the middleware refuses requests
from other origins. If pasted code might reach the host itself, only the setting can allow hosts.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.platform.models.access import PORTS, is_listed, require_url
from evaluator_host.platform.models.table import ModelTable
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.models import ModelHosts

if TYPE_CHECKING:
    from evaluator_host.platform.store.store import Store

_MOST: Final = 100  # maximum number of hosts that users can allow


class JudgeHosts:
    """The hosts on which evaluators may call models. `store` is None on the command line."""

    def __init__(self, settings: Settings, store: "Store | None") -> None:
        self._settings = settings
        self._listed = set(settings.judge_hosts or ())
        self._store = store

    async def show(self) -> ModelHosts:
        """Return the allowed hosts, and whether the user of this machine may allow more hosts."""
        if (store := await self._store_to_ask()) is not None:
            return ModelHosts(await ModelTable(store.database).list_hosts(), may_allow=True)
        return ModelHosts(sorted(self._listed), may_allow=False)

    async def require(self, url: str, *, field: str) -> None:
        """Check that evaluators may call models at a URL.

        Raises:
          InvalidRequest: the URL is not valid, or not allowed; `field` is the field of the request that contains the
            URL.
        """
        parts = require_url(url)
        if is_listed(parts, self._listed):
            return
        hint = (
            "the operator can allow it by adding it to EVALUATOR_HOST_JUDGE_HOSTS, a JSON list, and restarting the host"
        )
        if (store := await self._store_to_ask()) is not None:
            if host_of(parts) in await ModelTable(store.database).list_hosts():
                return
            hint = "allow it when you add the model: `allow_host`, --allow-host, or the box below the URL"
        raise InvalidRequest.of(field, f"evaluators may not call models on {parts.hostname}", hint)

    async def allow(self, url: str) -> bool:
        """Let evaluators call models on the host of a URL; only the user of a host without keys may do this.

        Returns:
          Whether the host is newly allowed.

        Raises:
          InvalidRequest: the URL is not valid, or only the operator's setting allows hosts here.
          InUse: 100 hosts are already allowed.
        """
        parts = require_url(url)
        if is_listed(parts, self._listed):
            return False
        if (store := await self._store_to_ask()) is None:
            await self.require(url, field="url")  # the host is not allowed, so this call raises the error
            return False
        is_new = host_of(parts) not in await ModelTable(store.database).list_hosts()
        await ModelTable(store.database).allow_host(host_of(parts), most=_MOST)
        return is_new

    @asynccontextmanager
    async def kept_if_done(self, url: str, *, is_new: bool) -> AsyncIterator[None]:
        """Forbid the host again if the block fails and `allow` returned true (`is_new`)."""
        try:
            yield
        except BaseException:
            if is_new and self._store is not None:
                await ModelTable(self._store.database).forbid_host(host_of(require_url(url)))
            raise

    async def _store_to_ask(self) -> "Store | None":
        chosen = self._settings
        if self._store is None or chosen.judge_hosts is not None or chosen.sandbox is SandboxChoice.NONE:
            return None
        if chosen.network_private or await self._store.keys.any_made():
            return None
        return self._store


def host_of(parts: SplitResult) -> str:
    """Return the host of a URL with its port."""
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{host}:{parts.port or PORTS[parts.scheme]}"
