"""Records the hosts whose addresses code looks up in vain, so that no answer of theirs is made up in silence."""

from __future__ import annotations

import _socket

from evaluator_runner import jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 5
_NAME_CHARS = 200
_NO_NOTES = b'"notes":[]}'

hosts: dict[str, None] = {}
"""Those since the last `take`."""


def install() -> None:
    """Record from now on what is looked up in vain."""
    look_up = _socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return look_up(host, *args, **kwargs)
        except OSError:
            name = host.decode(errors="replace") if type(host) is bytes else host
            if type(name) is str and len(hosts) < _MOST:
                hosts[name[:_NAME_CHARS]] = None
            raise

    _socket.getaddrinfo = getaddrinfo


def take() -> str:
    """Return what to say of the hosts that were looked up in vain, and forget them; empty if there are none."""
    if not hosts:
        return ""
    told = ", ".join(list(hosts))
    hosts.clear()
    return f"the code asked {told}, which it cannot reach, and goes on without an answer"


def added_to(body: bytes) -> bytes:
    """Return the body of a result with a note on the hosts that were looked up in vain."""
    note = jsontext.to_bytes(jsontext.encode({"code": "unreachable", "message": take()}))
    if body.endswith(_NO_NOTES):
        return body[:-2] + note + b"]}"
    return body[:-2] + b"," + note + b"]}"
