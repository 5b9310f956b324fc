"""Package indexes for tests: a PEP 503 index and an npm registry on one port, with passwords, TLS and faults.

    with Index() as index:
        index.add_wheel(wheel("demo", {"demo.py": "answer = 42"}))
        index.pip_url, index.npm_url

`index.asked` has every request with its Authorization header.
"""

import base64
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.packages import Archive

Answer = Callable[["Handler"], None]


@dataclass(frozen=True)
class Asked:
    path: str
    authorization: str | None


class Handler(BaseHTTPRequestHandler):
    """Answers with a file from `index.files`, or with the fault in `index.odd` for this path."""

    protocol_version = "HTTP/1.1"
    index: "Index"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        authorization = self.headers.get("Authorization")
        self.index.asked.append(Asked(path, authorization))
        if self.index.user and not self.index.allows(authorization):
            self.reply(401, b"", {"WWW-Authenticate": 'Basic realm="packages"'})
        elif path in self.index.odd:
            with suppress(OSError):
                self.index.odd[path](self)
        elif path in self.index.files:
            kind, body = self.index.files[path]
            self.reply(200, body, {"Content-Type": kind})
        else:
            self.reply(404, b"")

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(b"" if self.command == "HEAD" else body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the base class
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, because these tests kill clients during requests."""


@dataclass
class Index:
    """One index server. `user` is `name:password`, `token` is a bearer token, `tls` is a certificate with its key."""

    user: str | None = None
    token: str | None = None
    tls: Path | None = None
    host: str = "127.0.0.1"
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    odd: dict[str, Answer] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        handler = type("Bound", (Handler,), {"index": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self._server.server_port}"

    @property
    def pip_url(self) -> str:
        return f"{self._with_user}/simple"

    @property
    def npm_url(self) -> str:
        return f"{self._with_user}/npm/"

    @property
    def _with_user(self) -> str:
        return self.url.replace("://", f"://{self.user}@") if self.user else self.url

    def allows(self, authorization: str | None) -> bool:
        basic = "Basic " + base64.b64encode((self.user or "").encode()).decode()
        return authorization in (basic, f"Bearer {self.token}" if self.token else basic)

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def add_python(self, archive: Archive, *, served: bytes | None = None) -> None:
        """Offer a wheel or a source archive. The index lists the hash of the archive; if `served` is given, the index
        sends `served` instead.
        """
        digest = hashlib.sha256(archive.content).hexdigest()
        self.files[f"/files/{archive.file_name}"] = ("application/octet-stream", served or archive.content)
        page = f"/simple/{archive.name}/"
        others = self.files.get(page, ("", b""))[1]
        link = f'<a href="/files/{archive.file_name}#sha256={digest}">{archive.file_name}</a>\n'
        self.files[page] = ("text/html", (others or b"<!DOCTYPE html>\n") + link.encode())

    def add_npm(self, archive: Archive, *, served: bytes | None = None) -> None:
        """Offer a tarball. The index lists the tarball's integrity; if `served` is given, the index sends `served`
        instead.
        """
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive.content).digest()).decode()
        tarball = f"/npm/{archive.name}/-/{archive.file_name}"
        version = {**archive.manifest, "dist": {"tarball": self.url + tarball, "integrity": integrity}}
        document = {"name": archive.name, "dist-tags": {"latest": archive.version}}
        document["versions"] = {archive.version: version}
        self.files[f"/npm/{archive.name}"] = ("application/json", json.dumps(document).encode())
        self.files[tarball] = ("application/octet-stream", served or archive.content)


def redirect(target: str) -> Answer:
    return lambda handler: handler.reply(302, b"", {"Location": target})


def hang(handler: Handler) -> None:
    """Send nothing until the test is over."""
    handler.index.ended.wait(120)


def drip(handler: Handler) -> None:
    """Send single bytes, slowly and forever."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.end_headers()
    while not handler.index.ended.wait(0.2):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def flood(handler: Handler) -> None:
    """Send as much as the client accepts."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/vnd.pypi.simple.v1+html")
    handler.end_headers()
    block = b"<a href='x'>" + b"x" * 1_000_000 + b"</a>"
    until = time.monotonic() + 100
    while not handler.index.ended.is_set() and time.monotonic() < until:
        handler.wfile.write(block)
