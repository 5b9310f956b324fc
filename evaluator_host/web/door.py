"""Bounds what a connection may cost before a request exists: the size of its head and the time it takes to arrive."""

import asyncio
import json
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES: Final = 64 * 1024
HEAD_TIMEOUT_S: Final = 20.0

_BODY: Final = json.dumps(
    {
        "type": "about:blank",
        "title": "TooLarge",
        "status": 431,
        "code": "too_large",
        "detail": f"the request's headers are over {HEAD_BYTES >> 10} KB; data belongs in the body",
    }
).encode()
_REFUSAL: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)


class Door(HttpToolsProtocol):
    """Speaks HTTP as uvicorn does, to clients that it does not trust with its memory or its descriptors.

    The parser gathers a head (and the trailers of a chunked body) without a limit; bytes that bring no part of a body
    and complete no head are counted here.
    """

    _idle_bytes = 0
    _answering = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._progress()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse a head without end."""
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > HEAD_BYTES and not self.transport.is_closing():
            if not self._answering:
                self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to wait for the head of a later request too."""
        super().on_message_begin()
        self._answering = False
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Take the request."""
        self._progress()
        self._answering = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body; its size is the guard's affair."""
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._idle_bytes = 0
        super().on_message_complete()

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._give_up)

    def _progress(self) -> None:
        self._idle_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.close()
