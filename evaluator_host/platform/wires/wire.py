"""The class `Wire` declares how a platform calls this host. `WireRequest` is one request to a wire."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qs

import httpx
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from evaluator_host.engine.config.settings import WireOptions
from evaluator_host.platform.http.auth.keyring import KeyHolder, Keyring
from evaluator_host.platform.http.error_responses import FOREIGN
from evaluator_host.types.errors import HostError, Unauthorized
from evaluator_host.types.outcome import ErrorCode, EvaluationError

if TYPE_CHECKING:
    from evaluator_host.platform.wires.calls import WireCalls

MARGIN_S: Final = 0.5
"""Seconds by which a wire's time limit is longer than a row's, and its caller's is longer than the wire's."""

_SKEW_S: Final = 300
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})

Refuse: TypeAlias = Callable[[HostError, str], Response]
"""Takes an error of the host and the path below the wire; returns the response in the platform's terms."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One request that `wires check` sends.

    Attributes:
      title: What the request checks, in words.
      method: HTTP method.
      path: Path below the wire's URL; empty for the wire's URL itself.
      body: Value to send as JSON; None for no body.
      expects: Returns whether the response is what the platform needs.
      headers: Further headers; the header with the key is added.
    """

    title: str
    method: str
    path: str
    body: object
    expects: Callable[[httpx.Response], bool]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The requests with which one platform lets a host run its evaluators' code.

    Attributes:
      name: Name in `EVALUATOR_HOST_WIRES`, in paths, metrics and the audit log.
      title: One line that names the service of the platform that the wire replaces.
      variable: One line with the setting of the platform that turns the wire on. `{url}` in it stands for the wire's
        URL.
      clock_s: Seconds after which the platform gives up. The host answers every request earlier.
      row_s: Default time limit of a row in seconds; None for as long as `clock_s` allows.
      body_bytes: Size limit of a request body.
      refuse: Returns the response for an error of the host.
      routes: Returns the routes, below `prefix`.
      probes: Function that returns the requests for `wires check`. It is called with the part of the URL below the
        prefix.
      prefix: Path of the wire; by default `/wires/<name>`.
      open_paths: Paths below the prefix that need no key, for health checks.
      key_of: Returns the key in a header or parameter that only this platform uses, or None. The default returns None.
      signature_header: Header with the signature of the body; empty if the platform does not sign.
    """

    name: str
    title: str
    variable: str
    clock_s: float
    body_bytes: int
    refuse: Refuse
    routes: Callable[["WireCalls"], list[BaseRoute]]
    probes: Callable[[str], tuple[Probe, ...]]
    row_s: float | None = None
    prefix: str = ""
    open_paths: frozenset[str] = frozenset()
    key_of: Callable[[Scope, Mapping[str, str]], str | None] = lambda _scope, _headers: None
    signature_header: str = ""

    @property
    def path(self) -> str:
        """URL path at which the wire is served."""
        return self.prefix or f"/wires/{self.name}"

    def limit_s(self, options: WireOptions) -> float:
        """Return the time limit of a row in seconds: the limit in the options, but less than `clock_s`."""
        longest = self.clock_s - 2 * MARGIN_S
        return min(options.timeout_s or self.row_s or longest, longest)


class WireRequest:
    """One request to a wire: its caller, its deadline, and the format of its errors."""

    def __init__(
        self,
        wire: Wire,
        options: WireOptions,
        workspace_of: Callable[[str], Awaitable[str]],
        scope: Scope,
        key: str | None,
    ) -> None:
        self._wire = wire
        self._options = options
        self._workspace_of = workspace_of
        self._scope = scope
        self.key = key  # the key in the path, if it has one
        self.below = scope["path"].removeprefix(wire.path)
        self.ends_at = asyncio.get_running_loop().time() + wire.clock_s - MARGIN_S
        self.is_open = self.below in wire.open_paths
        self.body_bytes = options.body_kb << 10 if options.body_kb is not None else wire.body_bytes
        self.body_timeout_s = wire.clock_s / 2
        self.has_secret = False  # whether the caller sent the wire's secret instead of a workspace's key

    def refuse(self, error: HostError) -> Response:
        """Return the response for an error of the host, in the platform's format."""
        return self._wire.refuse(error, self.below)

    async def admit(self, keyring: Keyring, body: Callable[[], Awaitable[bytes]]) -> KeyHolder:
        """Return the caller of this request. The wire's secret, a signature of the body or a key proves who calls.

        Raises:
          Unauthorized: secret, signature and key are all missing, or one of them is wrong.
          StoreUnavailable: the database does not answer.
        """
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._scope["headers"]}
        token = self.key or self._wire.key_of(self._scope, headers) or _bearer(headers.get("authorization", ""))
        secret = self._options.secret
        if secret is not None:
            wanted = secret.get_secret_value()
            if token is not None and hmac.compare_digest(token.encode(), wanted.encode()):
                return await self._caller_with_secret()
            header = self._options.signature_header or self._wire.signature_header
            signature = headers.get(header.lower()) if token is None and self._scope["method"] in _WITH_BODY else None
            if signature is not None:
                _require_signature(signature, wanted.encode(), await body())
                return await self._caller_with_secret()
            if not keyring.required:
                raise Unauthorized("this wire needs its secret, and the request has no secret or a wrong one")
        return await keyring.admit(None if token is None else f"Bearer {token}")

    async def _caller_with_secret(self) -> KeyHolder:
        self.has_secret = True
        return KeyHolder(await self._workspace_of(self._options.workspace), f"wire:{self._wire.name}")


def wire_request(scope: Scope) -> WireRequest:
    """Return the `WireRequest` that the middleware stored in a request's scope."""
    found: WireRequest = scope[FOREIGN]
    return found


def query_key(scope: Scope) -> str | None:
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("key", ())), None)


def described(error: EvaluationError, *, with_line: bool = True) -> str:
    """Format an error as runtimes print it, such as `KeyError: 'x' (line 3)`, but without JavaScript's `Error:`.

    Without `with_line`, the line is left out.
    """
    name = f"{error.type}: " if error.type not in (None, "Error") and error.code is ErrorCode.USER_EXCEPTION else ""
    place = f" (line {error.line})" if with_line and error.line is not None else ""
    return f"{name}{error.message.removeprefix(name)}{place}"


def _bearer(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _require_signature(signature: str, secret: bytes, body: bytes) -> None:
    """Check the signature of a body: `t=<unix seconds>,v1=<hex>`, where `v1` is an HMAC of `<t>.<body>`.

    Raises:
      Unauthorized: the signature is not valid, or its time is over five minutes from now.
    """
    parts = dict(part.partition("=")[::2] for part in signature.split(",")[:10])
    at, given = parts.get("t", ""), parts.get("v1", "")
    wanted = hmac.new(secret, at.encode() + b"." + body, sha256).hexdigest()
    fresh = at.isascii() and at.isdecimal() and len(at) < 12 and abs(time.time() - int(at)) <= _SKEW_S
    if not fresh or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Unauthorized("the signature of this request is not valid; check the secret on both sides")
