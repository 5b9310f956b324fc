"""Records the network hosts that code cannot reach, so that the result can name them."""

from __future__ import annotations

import _socket
import sys

from evaluator_runner import jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 5
_NAME_CHARS = 200

hosts: dict[str, None] = {}
"""Hosts that code has tried but failed to reach since the last `take`."""


def install() -> None:
    """From now on, record the network hosts that code cannot reach."""
    look_up = _socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return look_up(host, *args, **kwargs)
        except OSError:
            _note(host.decode(errors="replace") if type(host) is bytes else host)
            raise

    _socket.getaddrinfo = getaddrinfo
    owner: Any = sys.modules.get("socket", _socket)
    owner.socket = _noting(owner.socket)


def _note(name: Any) -> None:
    if type(name) is str and len(hosts) < _MOST:
        hosts[name[:_NAME_CHARS]] = None


def _noting(kind: Any) -> Any:
    """Return a subclass of a socket class, which records hosts that refuse a connection and do not accept one later."""
    asked: dict[int, Any] = {}  # addresses that have neither accepted nor refused yet, by the socket's descriptor

    def settle(place: Any, *, reached: bool) -> None:
        if type(place) is tuple and len(place) > 1:
            name = f"{place[0]}:{place[1]}"
            hosts.pop(name, None) if reached else _note(name)

    class socket(kind):  # type: ignore[misc]  # noqa: N801 - the name of the class that it replaces
        __slots__ = ()

        def connect(self, address: Any) -> None:
            try:
                super().connect(address)
            except BlockingIOError:
                asked[self.fileno()] = address
                raise
            except OSError:
                settle(address, reached=False)
                raise
            settle(address, reached=True)

        def getsockopt(self, level: int, option: int, *more: Any) -> Any:
            found = super().getsockopt(level, option, *more)
            if option == _socket.SO_ERROR and level == _socket.SOL_SOCKET and self.fileno() in asked:
                settle(asked.pop(self.fileno()), reached=found == 0)
            return found

    socket.__module__ = kind.__module__
    return socket


def take() -> str:
    """Return a message about the hosts that code could not reach, and forget them. Return "" if there are none."""
    if not hosts:
        return ""
    told = ", ".join(list(hosts))
    hosts.clear()
    return f"the code could not reach {told}, and goes on without an answer"


def added_to(body: bytes) -> bytes:
    """Add a note to a result's body: the hosts that code could not reach."""
    return jsontext.with_note(body, "unreachable", take())
