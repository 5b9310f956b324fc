"""The attach stream of an engine reached by ssh: docker-py's channel object, read and written by two threads.

docker-py speaks `ssh://` by paramiko, which this package does not install: who uses it adds `pip install paramiko`.
"""

import asyncio
import contextlib
import queue
import threading
from typing import Any, Final

import docker

from evaluator_host.sandbox.docker.attach import READ_BYTES, WRITE_HIGH_BYTES, Inbox

_PARAMS: Final = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}


class SshChannel:
    """An attached container behind an object that only knows blocking `recv`, `sendall` and `close`."""

    def __init__(self, channel: Any) -> None:
        self.inbox = Inbox(pause=self._pause, resume=self._resume)
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = 0
        self._gone = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._readable = threading.Event()
        self._readable.set()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._receive, self._send)]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes for standard input."""
        if not self._gone:
            self._queued += len(data)
            if self._queued > WRITE_HIGH_BYTES:
                self._writable.clear()
            self._queue.put(data)

    async def drain(self) -> None:
        """Wait until the queue is short."""
        await self._writable.wait()

    async def close(self) -> None:
        """Drop the connection and end both threads."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._gone = True
        self._readable.set()
        self._queue.put(None)
        with contextlib.suppress(OSError, EOFError):
            self._channel.close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _pause(self) -> None:
        self._readable.clear()

    def _resume(self) -> None:
        self._readable.set()

    def _receive(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while self._readable.wait() and (data := self._channel.recv(READ_BYTES)):
                self._tell(self.inbox.feed, data)
        self._tell(self._lost)

    def _send(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while (data := self._queue.get()) is not None:
                self._channel.sendall(data)
                self._tell(self._sent, len(data))

    def _sent(self, size: int) -> None:
        self._queued -= size
        if self._queued <= WRITE_HIGH_BYTES:
            self._writable.set()

    def _lost(self) -> None:
        self._gone = True
        self._queue.put(None)
        self.inbox.close()
        self._writable.set()

    def _tell(self, function: Any, *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(function, *args)


def open_channel(client: docker.APIClient, container: str) -> Any:
    """Attach over docker-py's own transport; blocks. Returns an object with `recv`, `sendall` and `close`."""
    channel = client.attach_socket(container, params=_PARAMS)
    settimeout = getattr(channel, "settimeout", None)
    if settimeout is not None:
        settimeout(None)
    return channel
