"""Shuts a host down without losing calls: running calls finish, new ones get 503, the rest is cut off after a while.

Every call gets exactly one response: its result, or a 503 that says to call another host.
"""

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evaluator_host.model.errors import SandboxUnavailable
from evaluator_host.web.http.error_responses import problem_response

_ALWAYS: Final = frozenset({"/healthz", "/metrics"})  # a host that shuts down is still alive


class Drain:
    """ASGI middleware around everything else, so that it sees every call.

    Attributes:
      idle: Set while no call is running.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._calls: set[asyncio.Task[None]] = set()
        self._refusing = False
        self._cutting = False
        self.idle = asyncio.Event()
        self.idle.set()

    def begin(self) -> None:
        """Refuse new calls from now on; running ones continue."""
        self._refusing = True

    def cut(self) -> None:
        """End every running call with a 503, or cut its response off if that has begun."""
        self._refusing = self._cutting = True
        for call in self._calls:
            call.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, or refuse it during the shutdown."""
        if scope["type"] != "http" or scope["path"] in _ALWAYS:
            await self._app(scope, receive, send)
        elif self._refusing:
            await _refuse(scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - an ASGI server calls from a task
        answering = False

        async def sending(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        self._calls.add(task)
        self.idle.clear()
        try:
            await self._app(scope, receive, sending)
        except asyncio.CancelledError:
            if not self._cutting or answering:
                raise
            task.uncancel()
            await _refuse(scope, receive, send)
        finally:
            self._calls.discard(task)
            if not self._calls:
                self.idle.set()


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    response = problem_response(SandboxUnavailable("this host is shutting down; try again, or call another one"))
    response.headers["Retry-After"] = "1"
    response.headers["Connection"] = "close"
    await response(scope, receive, send)
