"""Lets the HTTP clients of a process use the same certificate authorities, because reading them takes 25 ms."""

import os
import ssl
from functools import cache
from typing import Any

from httpx._transports import default

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def share_authorities() -> None:
    """Make httpx read each set of certificate authorities only once; clients with different options still read them
    each time.
    """
    read = default.create_ssl_context
    if getattr(read, "shared", False):
        return

    @cache
    def once(trust_env: bool, *_: str | None) -> ssl.SSLContext:
        return read(trust_env=trust_env)

    def shared(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is True and cert is None:
            return once(trust_env, *map(os.environ.get, _VARIABLES))
        return read(verify=verify, cert=cert, trust_env=trust_env)

    shared.shared = True  # type: ignore[attr-defined]
    default.create_ssl_context = shared
