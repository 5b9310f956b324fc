"""Sends each HTTP request on a separate connection. For a thousand requests at once, a client with a pool would use
more processor time than the host.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ANSWERED_S = 300


class NoAnswer(Exception):
    """There was no answer: the connection was refused, broke off or stayed silent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its status, its headers by their lower-case names, and its body."""

    status: int
    headers: Mapping[str, str]
    body: Any


async def post(port: int, path: str, body: Mapping[str, Any], *, key: str) -> Answer:
    """Send a JSON body to a host on this machine, and return the answer.

    Raises:
      NoAnswer: there was no answer.
    """
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    try:
        async with asyncio.timeout(_ANSWERED_S):
            return _answer(await _exchange(port, head.encode() + content))
    except (OSError, TimeoutError, ValueError, IndexError) as error:
        raise NoAnswer(repr(error)) from error


async def _exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _answer(received: bytes) -> Answer:
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(status.split()[1]), headers, json.loads(body))
