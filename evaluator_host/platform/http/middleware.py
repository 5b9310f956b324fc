"""Checks every request before the application gets it: host name, origin, key, rate, size and time of the body.

A page from another origin must not post code to a developer's localhost, neither directly (Origin, Sec-Fetch-Site) nor
through a DNS name that points to 127.0.0.1 (Host). Requests without a valid key, or over a limit, are refused here.
An unexpected exception in the application becomes a 500 response without any user's data.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evaluator_host.engine.system.memory import MemoryBudget, Reservation
from evaluator_host.platform.http.auth.access import Access, set_caller
from evaluator_host.platform.http.connection_limits import COMPLETE
from evaluator_host.platform.http.error_log import CutOff
from evaluator_host.platform.http.error_responses import ERROR_CODE, FOREIGN, error_response
from evaluator_host.types.errors import (
    Busy,
    HostError,
    InvalidRequest,
    MachineExhausted,
    Refused,
    TooLarge,
    TooSlow,
    Unauthorized,
)
from evaluator_host.types.json_values import LARGE_BYTES

# copies of a body in memory at the same time: the received chunks, the joined body, and the sandbox's row and frame
BODY_COPIES: Final = 4
BYTES_PER_S: Final = 256 * 1024  # average speed above which a body has no time limit
_DISCARD_S: Final = 3.0

_MEMORY: Final = "evaluator_host.memory"
_ARRIVED: Final = "evaluator_host.body_arrived"
_SIGNED: Final = "evaluator_host.signed_body"
_HEADERS: Final = "evaluator_host.headers"
_OPEN: Final = frozenset({"/healthz", "/readyz"})
_READING: Final = frozenset({"GET", "HEAD"})
_CALL: Final = "/v1/evaluate"
_UPLOADS: Final = frozenset({"/v1/data", "/v1/datasets"})
_FILES: Final = re.compile(r"/apis/files/v2/workspaces/[^/]+/filesets/[^/]+/-/.+")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")
_ONCE: Final = frozenset({b"host", b"origin", b"authorization", b"content-length", b"content-type"})
_READ: Final = _ONCE | {b"sec-fetch-site", b"sec-fetch-mode", b"content-encoding"}

_log = logging.getLogger(__name__)


class AccessMiddleware:
    """ASGI middleware around the whole application. A refused request never reaches the application."""

    def __init__(
        self,
        app: ASGIApp,  # the application
        *,
        access: Access | None,  # decides who may call; None refuses everybody
        hosts: Iterable[str],  # host names to accept, besides loopback
        body_bytes: int,  # size limit of a body
        upload_bytes: int,  # size limit of an upload, which goes to disk while it arrives
        body_timeout_s: float,  # time limit for a body; a body that arrives steadily may take longer
        memory_bytes: int,  # memory for all requests together; see `MemoryBudget`
        open_paths: Iterable[str] = (),  # paths that need no key, besides the probes
        # whether a request is a GET for a page of the workbench, which needs no key
        is_page: Callable[[Scope], bool] = lambda _: False,
        # a context that counts an evaluation of one row while it runs; None to count none
        calls: Callable[[], AbstractContextManager[None]] | None = None,
        # called with the error code of each response with status 429
        count_refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._app = app
        self._access = access
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._body_bytes = body_bytes
        self._upload_bytes = upload_bytes
        self._body_timeout_s = body_timeout_s
        self._memory = MemoryBudget(memory_bytes)
        self._open = _OPEN | set(open_paths)
        self._is_page = is_page
        self._calls = calls or nullcontext
        self._count_refused = count_refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on with a limited body."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here checks the key or origin of a WebSocket
            raise NotImplementedError(f"this host speaks HTTP only, not {scope['type']}")
        sending = _Sending(send, scope, self._count_refused)
        try:
            headers = headers_of(scope)
            upload = _is_upload(scope)  # an upload goes to disk while it arrives
            ceiling, body_timeout_s = self._limits(scope, upload=upload)
            length = self._check(headers, ceiling)
            signed = partial(self._signed_body, scope, receive, length, ceiling, body_timeout_s)
            workspace = await self._admit(scope, headers, signed)
            first = self._calls() if scope["path"] == _CALL else nullcontext()
            with first, self._counted(workspace, upload=upload), self._memory.hold(workspace) as memory:
                scope[_MEMORY] = sending.memory = memory
                if not upload:
                    memory.reserve(BODY_COPIES * max(length, len(scope.get(_SIGNED, b""))))
                await self._app(
                    scope, self._bounded(scope, receive, ceiling, body_timeout_s, None if upload else memory), sending
                )
        except HostError as error:
            if isinstance(error, Busy) and _ARRIVED not in scope:
                await _discard_body(receive)
            await self._answer(error, scope, receive, sending)
        except ClientDisconnect:
            _log.info("%s %s: the client hung up before its request was complete", scope["method"], scope["path"])
        except Exception as error:  # noqa: BLE001 - the outermost layer: the caller gets the common error shape
            if (exhausted := MachineExhausted.cause_of(error)) is not None:
                _log.warning("%s %s: %s", scope["method"], scope["path"], exhausted.detail)
                await self._answer(exhausted, scope, receive, sending)
                return
            if (known := _known_cause(error)) is None:
                _log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            await self._answer(known or HostError("the host failed; its log says where"), scope, receive, sending)

    async def _answer(self, error: HostError, scope: Scope, receive: Receive, sending: "_Sending") -> None:
        if sending.started:  # the response has begun, so an error response is no longer possible
            _log.warning("%s %s: the response was cut off: %s", scope["method"], scope["path"], error.detail)
            raise CutOff from error
        await error_response(scope, error)(scope, receive, sending)

    def _limits(self, scope: Scope, *, upload: bool) -> tuple[int, float]:
        """Return the maximum size of a body in bytes, and the number of seconds in which it must arrive."""
        if (foreign := scope.get(FOREIGN)) is not None:
            return min(foreign.body_bytes, self._body_bytes), min(foreign.body_timeout_s, self._body_timeout_s)
        return self._upload_bytes if upload else self._body_bytes, self._body_timeout_s

    def _check(self, headers: dict[bytes, str], ceiling: int) -> int:
        """Check the headers, and return the size of the body according to them; 0 if they do not contain the size."""
        host = headers.get(b"host", "").lower()
        named = _HOST.fullmatch(host)
        if named is None or (named.group(1) or named.group(2)) not in self._hosts:
            raise Refused(
                f"{host[:100]!r} is not a name of this host; "
                "use localhost, or ask the operator to add the name to EVALUATOR_HOST_ALLOWED_HOSTS"
            )
        origin = headers.get(b"origin")
        if origin is not None and _netloc(origin) != host:
            raise Refused(
                f"web pages of {origin[:100]!r} may not use this host; call it from this host's own pages, or from "
                "a program"
            )
        # a browser that sends no Origin still marks requests from other sites; following a link is allowed
        if headers.get(b"sec-fetch-site") == "cross-site" and headers.get(b"sec-fetch-mode") != "navigate":
            raise Refused(
                "web pages of another site may not use this host; call it from this host's own pages, or from a program"
            )
        text = headers.get(b"content-length", "0")
        length = int(text[:20]) if text.isdecimal() else 0
        if length > ceiling:
            raise _too_large(ceiling)
        return length

    async def _admit(self, scope: Scope, headers: dict[bytes, str], signed_body: Callable[[], Awaitable[bytes]]) -> str:
        """Return the caller's workspace; an empty string for paths that need no key.

        `signed_body` reads the body, if a signature of the body proves who calls.
        """
        foreign = scope.get(FOREIGN)
        if foreign is not None and foreign.is_open:
            return ""
        if scope["path"] in self._open or (scope["method"] in _READING and self._is_page(scope)):
            return ""
        if self._access is None:
            raise Unauthorized("this host does not accept calls now; try again, or call another host")
        keyring = self._access.keyring
        try:
            caller = await (
                foreign.admit(keyring, signed_body) if foreign else keyring.admit(headers.get(b"authorization"))
            )
        except Unauthorized:
            self._access.note_refusal((scope.get("client") or ("unknown",))[0])
            raise
        await self._access.count_request(caller)
        set_caller(scope, caller)
        return caller.workspace

    async def _signed_body(self, scope: Scope, receive: Receive, length: int, ceiling: int, timeout_s: float) -> bytes:
        """Read a body before the caller is known, and keep it for the application.

        Until its signature is checked, the request counts as a request of a workspace with the id `""`.
        """
        places = self._access.requests.hold("") if self._access else nullcontext()
        with places, self._memory.hold("") as memory:
            memory.reserve(BODY_COPIES * length)
            body = await Request(scope, self._bounded(scope, receive, ceiling, timeout_s, memory)).body()
        scope[_SIGNED] = body
        return body

    def _counted(self, workspace: str, *, upload: bool) -> AbstractContextManager[None]:
        """Return a context manager that counts one more request, or one more upload, of a workspace."""
        if self._access is None or not workspace:
            return nullcontext()
        return (self._access.uploads if upload else self._access.requests).hold(workspace)

    def _bounded(
        self, scope: Scope, receive: Receive, ceiling: int, timeout_s: float, memory: Reservation | None
    ) -> Receive:
        """Wrap `receive`, so that it enforces the limits on the body's size, time and memory."""
        loop = asyncio.get_running_loop()
        seen, deadline = 0, loop.time() + timeout_s

        async def bounded() -> Message:
            nonlocal seen
            if (body := scope.pop(_SIGNED, None)) is not None:
                return {"type": "http.request", "body": body}
            if _ARRIVED in scope:  # the body was already read; the next message says that the caller hung up
                return await receive()
            if COMPLETE in scope:  # the body has already arrived, so no time limit is needed
                message = await receive()
            else:
                try:
                    async with asyncio.timeout_at(deadline + seen / BYTES_PER_S):
                        message = await receive()
                except TimeoutError as error:
                    raise TooSlow(f"the body did not arrive within {timeout_s:g} s") from error
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if not message.get("more_body", False):
                    scope[_ARRIVED] = True
                if seen > ceiling:
                    raise _too_large(ceiling)
                if memory is not None:
                    # without a length in the headers, the reservation grows with the body
                    memory.reserve(BODY_COPIES * seen)
            return message

        return bounded


class _Sending:
    """Sends a response, and records whether the response has begun.

    A large response takes memory until its reader has received it. If there is too little memory for it, a 429 response
    is sent instead, and `refused` is set.
    """

    def __init__(self, send: Send, scope: Scope, count_refused: Callable[[str], None]) -> None:
        self.started = self.refused = False
        self.memory: Reservation | None = None
        self._send = send
        self._scope = scope
        self._count_refused = count_refused

    async def __call__(self, message: Message) -> None:
        if self.refused:
            return
        if message["type"] == "http.response.start" and not self.started:
            try:
                self._reserve(int(dict(message.get("headers", ())).get(b"content-length", 0)))
            except Busy as error:
                self.refused = True
                await error_response(self._scope, error)(self._scope, _nothing, self._begin)
                return
            self.started = True
            await self._begin(message)
        elif len(message.get("body", b"")) > LARGE_BYTES:
            await self._send_large(message)
        else:
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        """Send a message, and count the response if it begins with status 429."""
        if message.get("status") == Busy.status:
            self._count_refused(self._scope.get(ERROR_CODE, Busy.code))
        await self._send(message)

    def _reserve(self, length: int) -> None:
        if self.memory is not None and length > LARGE_BYTES:
            self.memory.add(length)

    async def _send_large(self, message: Message) -> None:
        """Send a body in parts, because the client may stop reading.

        Each part waits until the part before it is written.
        """
        body = memoryview(message["body"])
        while len(body) > LARGE_BYTES:
            await self._send({"type": message["type"], "body": bytes(body[:LARGE_BYTES]), "more_body": True})
            body = body[LARGE_BYTES:]
        await self._send({**message, "body": bytes(body)})


async def _discard_body(receive: Receive) -> None:
    """Read the body of a refused request for a moment, because a client cannot read the error while it is sending."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_S):
            while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                pass


def _known_cause(error: BaseException | None) -> HostError | None:
    """Return the `HostError` that a task group or Starlette has wrapped in this error; None if there is none."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RuntimeError) and "response already started" in str(error):
        return _known_cause(error.__cause__)
    return error if isinstance(error, HostError) else None


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def memory_of(scope: Scope) -> Reservation:
    """Return a request's memory reservation. The middleware creates it, and the request's handler may enlarge it."""
    memory: Reservation = scope[_MEMORY]
    return memory


def headers_of(scope: Scope) -> dict[bytes, str]:
    """Return the headers that the middleware or a route that reads JSON needs; they are searched once for a request.

    Raises:
      InvalidRequest: a header occurs twice. A proxy in front of this host may have read the other header.
    """
    found: dict[bytes, str] | None = scope.get(_HEADERS)
    if found is not None:
        return found
    found = {}
    for name, value in scope["headers"]:
        if name in _READ:
            if name in found and name in _ONCE:
                raise InvalidRequest(f"the request has the header {name.decode()} several times; send it once")
            found[name] = value.decode("latin-1")
    scope[_HEADERS] = found
    return found


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_upload(scope: Scope) -> bool:
    if scope["method"] == "PUT":
        return _FILES.fullmatch(scope["path"]) is not None
    return scope["method"] == "POST" and scope["path"] in _UPLOADS


def _too_large(ceiling: int) -> TooLarge:
    return TooLarge(
        f"the body is over this host's limit of {ceiling / (1 << 20):g} MB; send fewer rows per request, or ask the "
        "operator to raise EVALUATOR_HOST_BODY_MB (for a data set EVALUATOR_HOST_DATASETS_MB)"
    )
