"""Checks the models that online jobs call, and opens connections to them with their keys."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import certifi
import httpx

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.packages.index import require_authorities
from evaluator_host.engine.system.lookups import TENANT_NAMES, Dial, LookupFailed
from evaluator_host.platform.models import agents
from evaluator_host.platform.models.endpoint import Endpoint
from evaluator_host.platform.models.prompts import prompt_templates
from evaluator_host.platform.store.secrets import Secrets
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import Target

_OURS: Final = frozenset({"model", "messages", "stream", "stream_options", "n"})
PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ADDRESS_S: Final = 3.0  # time limit, in seconds, for connecting to one address of a host
_TARGET_EXAMPLE: Final = "write an address such as https://api.example.com/v1; store the key as a secret"


class ModelAccess:
    """Checks the models that jobs call, and opens connections to them.

    `any_key` returns whether an API key of this host was ever created. Until then, only the operator calls the host.
    """

    def __init__(self, settings: Settings, *, secrets: Secrets, any_key: Callable[[], Awaitable[bool]]) -> None:
        self._settings = settings
        self._secrets = secrets
        self._any_key = any_key

    async def require(self, target: Target, workspace_id: str) -> str | None:
        """Check a job's model, and return its API key; None for a model without a secret.

        Raises:
          InvalidRequest: the target is not valid, or jobs may not call its host.
          NotFound: there is no such secret.
          Misconfigured: the secret cannot be decrypted.
        """
        parts = require_url(target.base_url)
        _require_inference(target)
        if target.agent is not None:
            agents.require(target.agent)
        prompt_templates(target)
        await self._require_allowed(parts)
        return await self._secrets.reveal(workspace_id, target.api_key) if target.api_key is not None else None

    @asynccontextmanager
    async def open(self, target: Target, workspace_id: str) -> AsyncIterator[Endpoint]:
        """Check a job's model again, because settings and secrets may have changed, and yield its endpoint.

        Raises the same errors as `require`.
        """
        key = await self.require(target, workspace_id)
        dial = partial(TENANT_NAMES.look_up, workspace=workspace_id)
        client = make_http_client(
            self._settings, target.base_url, timeout_s=target.timeout_s, at_once=target.concurrency, dial=dial
        )
        async with client:
            yield (Endpoint if target.agent is None else agents.AgentEndpoint)(target, key, client)

    async def _require_allowed(self, parts: SplitResult) -> None:
        allowed, host = self._settings.target_hosts, str(parts.hostname)
        if is_listed(parts, allowed):
            return
        if not allowed and not await self._any_key():
            return
        hint = f"the operator can allow it with EVALUATOR_HOST_TARGET_HOSTS='[\"{host}\"]'"
        raise InvalidRequest.of("target.base_url", f"jobs may not call {host}", hint, what="target")


def is_listed(parts: SplitResult, allowed: Iterable[str]) -> bool:
    """Return whether the host of a URL is in a list of hosts (name, name:port or *)."""
    host, port = str(parts.hostname), parts.port or PORTS[parts.scheme]
    return not {one.lower() for one in allowed}.isdisjoint(
        {"*", host, f"{host}:{port}", f"[{host}]", f"[{host}]:{port}"}
    )


def require_url(base_url: str, *, field: str = "base_url", path_only: bool = True) -> SplitResult:
    """Check and split a URL that the host will call. Error messages never repeat the URL: it may contain a key.

    Args:
      base_url: The URL.
      field: The field of the request that contains the URL, for messages.
      path_only: Whether to refuse a query, and a path that ends in `/chat/completions`; the host adds this ending
        itself.

    Raises:
      InvalidRequest: the URL is not valid.
    """
    where, what = ("target.base_url", "target") if path_only else (field, "address")
    refused = partial(InvalidRequest.of, where, what=what)
    example = _TARGET_EXAMPLE if path_only else "write the whole address, such as https://hooks.example.com/T0/B1"
    try:
        parts = urlsplit(base_url)
        whole = parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0
        # check that httpx would send to the same host
        whole = whole and httpx.URL(base_url).host == parts.hostname
        # raises an error if a label has over 63 characters, as a DNS lookup would
        _ = (parts.hostname or "").encode("idna")
    except (ValueError, httpx.InvalidURL) as error:
        raise refused("it is not a URL", example) from error
    if not whole:
        raise refused("it must be an http:// or https:// address", example)
    if "@" in parts.netloc:
        raise refused("it must not contain a user or a password", example)
    if path_only and (parts.query or parts.fragment or "?" in base_url or "#" in base_url):
        raise refused("it must not have a query or a fragment", example)
    if path_only and parts.path.rstrip("/").endswith("/chat/completions"):
        raise refused("leave out /chat/completions, which the host adds", example)
    if not base_url.isascii() or not base_url.isprintable() or " " in base_url or "\\" in base_url:
        raise refused("it has a space, a backslash or a character that is not allowed in URLs", example)
    return parts


def _require_inference(target: Target) -> None:
    taken = sorted(_OURS & set(target.inference))
    if taken:
        message = f"{', '.join(taken)} cannot be set in `inference`: the host asks for one whole answer per row"
        raise InvalidRequest.of("target.inference", message, what="target")


def make_http_client(
    settings: Settings, base_url: str, *, timeout_s: float, at_once: int, dial: Dial
) -> httpx.AsyncClient:
    """Return an HTTP client for one address. The client does not follow redirects, and ignores proxy variables.

    The client connects to an address that `dial` returns. With EVALUATOR_HOST_PROXY, the proxy looks up the name.

    Raises: Misconfigured: the operator's CA file cannot be read.
    """
    proxy = proxy_for(settings, str(urlsplit(base_url).hostname))
    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    transport = httpx.AsyncHTTPTransport(verify=_trusted(settings), trust_env=False, limits=limits, proxy=proxy)
    if proxy is None:
        pool: Any = transport._pool  # noqa: SLF001 - httpx has no argument for this; a test checks that it works
        pool._network_backend = _Dialling(pool._network_backend, dial)  # noqa: SLF001 - as above
    return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout_s)


class _Dialling:
    """Connects a client as httpcore's `AsyncNetworkBackend` does, but only to addresses that `dial` returns."""

    def __init__(self, backend: Any, dial: Dial) -> None:
        self._backend = backend
        self._dial = dial

    async def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> Any:  # noqa: ASYNC109 - as its interface
        """Connect to the first of a host's addresses that answers.

        Raises:
          httpx.ConnectError: the host has no address.
        """
        try:
            addresses = await self._dial(host, port)
        except LookupFailed as error:
            raise httpx.ConnectError(str(error)) from error
        for address in addresses[:-1]:
            with suppress(Exception):  # the next address is tried after any error of httpcore
                wait_s = _ADDRESS_S if timeout is None else min(timeout, _ADDRESS_S)
                return await self._backend.connect_tcp(address, port, timeout=wait_s, **options)
        return await self._backend.connect_tcp(addresses[-1], port, timeout=timeout, **options)

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


def _trusted(settings: Settings) -> ssl.SSLContext:
    file, changed_at = settings.ca_file, None
    with suppress(OSError):  # if the file cannot be read, the code that loads it reports the error
        changed_at = file and file.stat().st_mtime_ns
    return _authorities(file, changed_at)


# reading certificates blocks the event loop for 50 ms, and each message of an alert makes a client
@lru_cache(maxsize=2)
def _authorities(file: Path | None, _changed_at: int | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certifi.where())
    if file is not None:
        require_authorities(file, context)
    return context


def proxy_for(settings: Settings, host: str) -> str | None:
    """Return the proxy through which this host reaches another host; None for a direct connection."""
    proxy = settings.proxy
    if proxy is None or host in _LOOPBACK:
        return None
    direct = [name.strip().lower().lstrip(".") for name in settings.no_proxy.split(",")]
    if any(name == "*" or (name and (host == name or host.endswith(f".{name}"))) for name in direct):
        return None
    return proxy.get_secret_value()
