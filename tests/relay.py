"""A relay in front of a real server such as Docker's engine, also over TCP or TLS. Tests can cut the relay's
connections, or let them stay open without passing on data.
"""

import contextlib
import socket
import ssl
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self


class Relay:
    """Listens, and passes every connection on to a server's Unix socket until the relay is cut.

    Args:
      engine: Address of the server, `unix://…`.
      tls: The relay's TLS context. With `tls` or `tcp`, the relay listens on a port of 127.0.0.1, and otherwise on a
        Unix socket.

    Attributes:
      passing: While this event is not set, bytes wait in the relay. TLS connections ignore it.
    """

    def __init__(self, engine: str, *, tcp: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self._engine = engine.removeprefix("unix://")
        self._tls = tls
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "engine.sock"
        self._tcp = tcp or tls is not None
        self._port = 0
        self.passing = threading.Event()
        self.passing.set()
        self._pairs: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.open()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self._port}" if self._tcp else f"unix://{self._path}"

    def open(self) -> None:
        """Listen, or listen again."""
        if self._tcp:
            self._server = socket.create_server(("127.0.0.1", self._port))
            self._port = self._server.getsockname()[1]
        else:
            self._server = socket.socket(socket.AF_UNIX)
            self._server.bind(str(self._path))
            self._server.listen()
        self._spawn(self._accept, self._server)

    def cut(self) -> None:
        """Drop every connection and refuse new ones."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        if not self._tcp:
            self._path.unlink()
        for end in self._pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
        for end in self._pairs:
            end.close()
        self._pairs.clear()
        self._threads.clear()

    def forbid(self) -> None:
        """Make the socket usable only for root."""
        self._path.parent.chmod(0o755)
        self._path.chmod(0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server.fileno() >= 0:
            self.cut()
        self._folder.cleanup()

    def _spawn(self, work: object, *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = server.accept()
                far = socket.socket(socket.AF_UNIX)
                try:
                    far.connect(self._engine)
                except OSError:
                    near.close()  # this closes the client's connection if the server is down
                    continue
                self._pairs += [near, far]
                self._spawn(self._serve, near, far)

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                self._pairs.remove(near)
                near = self._tls.wrap_socket(near, server_side=True)
                self._pairs.append(near)
            # a short timeout, because one thread serves both directions of an SSL object
            near.settimeout(0.02 if self._tls else None)
            if self._tls is not None:
                self._both_ways(near, far)
                return
            self._spawn(self._one_way, far, near)
            self._one_way(near, far)

    def _both_ways(self, near: socket.socket, far: socket.socket) -> None:
        far.settimeout(0.005)
        while True:
            for source, target in ((near, far), (far, near)):
                with contextlib.suppress(TimeoutError):
                    data = source.recv(65536)
                    if not data:
                        near.close()
                        far.close()
                        return
                    target.settimeout(10)
                    target.sendall(data)
                    target.settimeout(0.02 if target is near else 0.005)

    def _one_way(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.passing.wait()
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
