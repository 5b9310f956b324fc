"""Servers for tests: an HTTP server with answers that the test chooses, and a server that sends the same bytes to every
client of a socket.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, str | None], tuple[int, str, bytes]]
"""Takes a path without its query and the `Authorization` header; returns status, content type and body."""


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """Yield the address of a server that answers GET and HEAD as `answer` decides. An answer with status 401 asks for
    credentials.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            status, kind, body = answer(self.path.partition("?")[0], self.headers.get("Authorization"))
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", "Basic")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(b"" if self.command == "HEAD" else body)
            except BrokenPipeError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def saying(answer: bytes | None, server: socket.socket) -> Iterator[None]:
    """During the block, send `answer` to each client of a listening socket, and close the connection. If `answer` is
    None, do not accept clients.
    """

    def serve() -> None:
        with suppress(OSError):
            while True:
                with closing(server.accept()[0]) as connection:
                    if connection.recv(65536) and answer:
                        connection.sendall(answer)

    if answer is not None:
        threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
