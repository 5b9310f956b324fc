"""Keeps the HTTP clients with which the host calls models: only a few, because callers may choose the addresses."""

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import httpx

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.system.lookups import MODEL_NAMES
from evaluator_host.platform.models.access import make_http_client

KEPT: Final = 64  # maximum number of unused clients that stay open


@dataclass(slots=True)
class _Client:
    http: httpx.AsyncClient
    users: int = 0


class OriginClients:
    """A client for each origin, so that a slow provider does not use up connections that another provider needs.

    Use it in one event loop only.

    Args:
      settings: Proxy and certificates.
      at_once: Maximum number of connections to one origin.
    """

    def __init__(self, settings: Settings, *, at_once: int) -> None:
        self._settings = settings
        self._at_once = at_once
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    @asynccontextmanager
    async def lend(self, url: str) -> AsyncIterator[httpx.AsyncClient]:
        """Yield the client for a URL. Then close the clients unused for longest, if there are too many."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._clients:
            dial = partial(MODEL_NAMES.look_up, workspace=str(parts.hostname))
            made = make_http_client(self._settings, origin, timeout_s=60.0, at_once=self._at_once, dial=dial)
            self._clients[origin] = _Client(made)
        client = self._clients[origin]
        self._clients.move_to_end(origin)
        client.users += 1
        try:
            yield client.http
        finally:
            client.users -= 1
            unused = [one for one, kept in self._clients.items() if not kept.users]
            for one in unused[: max(0, len(unused) - KEPT)]:
                await self._clients.pop(one).http.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        while self._clients:
            await self._clients.popitem()[1].http.aclose()
