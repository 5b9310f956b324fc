"""Closes idle TCP connections whose other machine has vanished, for example into standby; they would stay open."""

import socket
from typing import Any, Final

_OPTIONS: Final = {
    "TCP_KEEPIDLE": 30,  # seconds without data, after which the kernel asks the other machine
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
}


def keep_alive(connection: Any) -> None:
    """Let the kernel close an idle connection a minute after its other machine has vanished.

    TCP_USER_TIMEOUT is left alone, because it would also end downloads of clients that pause their reading.
    `connection` may also be a listening socket: connections that it accepts inherit the options.
    """
    if connection.family == socket.AF_UNIX:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if (option := getattr(socket, name, None)) is not None:  # macOS lacks some of these options
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
