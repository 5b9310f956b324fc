"""Makes HTTP clients for models, with the certificates and the proxy of the settings."""

import ssl
from typing import Final
from urllib.parse import urlsplit

import certifi
import httpx

from evaluator_host.config.settings import Settings
from evaluator_host.model.errors import Misconfigured

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def make_http_client(settings: Settings, base_url: str, *, timeout_s: float, at_once: int) -> httpx.AsyncClient:
    """Return a client for one address that follows no redirects and reads no proxy of the environment.

    Raises:
      Misconfigured: the operator's CA file cannot be read.
    """
    return httpx.AsyncClient(
        verify=_trusted(settings),
        proxy=_proxy(settings, str(urlsplit(base_url).hostname)),
        trust_env=False,
        follow_redirects=False,
        timeout=timeout_s,
        limits=httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once),
    )


def _trusted(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certifi.where())
    if (file := settings.ca_file) is not None:
        try:
            context.load_verify_locations(file)
        except OSError as error:  # ssl.SSLError is one
            raise Misconfigured(f"the CA file {file} cannot be read ({type(error).__name__})") from error
    return context


def _proxy(settings: Settings, host: str) -> str | None:
    proxy = settings.proxy
    if proxy is None or host in _LOOPBACK:
        return None
    direct = [name.strip().lower().lstrip(".") for name in settings.no_proxy.split(",")]
    if any(name == "*" or (name and (host == name or host.endswith(f".{name}"))) for name in direct):
        return None
    return proxy.get_secret_value()
