"""What stands between the network and the routes: Host and Origin checks, body size, body time, security headers.

A page of another origin must not post code to a developer's localhost, neither directly (Origin) nor by a DNS name that
was pointed at 127.0.0.1 (Host). A body that is too large is refused as soon as that is known.
"""

import asyncio
import json
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evaluator_host.errors import HostError, InvalidRequest, Refused, TooLarge
from evaluator_host.protocol import ProtocolError, decode_json
from evaluator_host.web.problems import problem_response

BODY_TIMEOUT_S: Final = 30.0
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware; outermost, so that nothing of the app runs for a request it refuses."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], body_bytes: int) -> None:
        self._app = app
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._body_bytes = body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with a counted body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(Headers(scope=scope))
        except HostError as error:
            await problem_response(error)(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), _with_headers(send))

    def _check(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if _hostname(f"//{host}") not in self._hosts:
            raise Refused(
                f"this host does not answer to the name {host[:100]!r}; "
                "use localhost, or have the operator add the name to EVALUATOR_HOST_ALLOWED_HOSTS"
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(f"pages of {origin[:100]!r} may not use this host")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._body_bytes:
            raise self._too_large()

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._body_bytes:
                    raise self._too_large()
            return message

        return counted

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the body is over this host's ceiling of {self._body_bytes >> 20} MB; send fewer rows at once, "
            "or have the operator raise EVALUATOR_HOST_BODY_MB"
        )


class JsonRequest(Request):
    """A request whose body is read within a time limit and decoded by orjson."""

    async def body(self) -> bytes:
        """Return the whole body.

        Raises:
          InvalidRequest: it did not arrive in time.
        """
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await super().body()
        except TimeoutError as error:
            raise InvalidRequest(f"the body did not arrive within {BODY_TIMEOUT_S:g} s") from error

    async def json(self) -> Any:
        """Return the decoded body; integers beyond 64 bits stay exact."""
        body = await self.body()
        try:
            return decode_json(body)
        except ProtocolError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error


def _hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
