"""Serves the workbench: the built files of its single-page application, and the API page at /docs.

Files are served from memory by their exact names, so no path of a request is used in the file system. With a content
security policy, the page can load scripts and data only from this host, so the output of an evaluator cannot become a
program in the browser.
"""

import asyncio
import base64
import gzip
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from evaluator_host.types.errors import NotFound

DIST: Final = Path(__file__).parent / "ui" / "dist"
PAGES: Final = frozenset((
    "", "migrate", "evaluators", "datasets", "jobs", "labels", "schedules", "compare", "environments", "models",
    "judge", "help",
))  # fmt: skip
"""The first part of each page's path; src/routes.ts has the rest."""

_ASSETS: Final = "/assets/"
_FOREVER: Final = "public, max-age=31536000, immutable"  # safe, because a file's name contains a hash of its content
_MEDIA_TYPES: Final = {
    "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "txt": "text/plain", "wasm": "application/wasm",
}  # fmt: skip
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_NOT_BUILT: Final = (
    "The pages of the workbench are not built. In a checkout `make setup` builds them; a wheel contains them.\n"
    "The API works without them: see /openapi.json.\n"
)
_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{scripts}; connect-src 'self'; font-src 'self'; "
    "style-src 'self' 'nonce-{nonce}'; "  # for styles of the frame and the editor
    "img-src 'self' data: blob:; "  # `data:` for the editor's squiggles, `blob:` for the download of a plot
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types worker"  # only for the address of TypeScript's worker
)


_DOCS: Final = "/docs"
_DOCS_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class _Asset:
    media_type: str
    content: bytes
    is_gzipped: bool


@dataclass(frozen=True, slots=True)
class _Built:
    """A build in memory. `stamp` changes with every build, and `policy` allows the scripts in `page`."""

    stamp: int
    page: str
    policy: str
    docs: str
    assets: Mapping[str, _Asset]


def is_page(path: str) -> bool:
    """Return whether a path belongs to the workbench. Anybody may load its pages, since they contain no data."""
    first = path[1:].split("/", 1)[0]
    return path in ("/", _DOCS) or path.startswith(_ASSETS) or (first != "" and first in PAGES)


def _wants_page(scope: Scope) -> bool:
    """Return whether the request comes from a browser that wants a page."""
    return scope.get("method") in ("GET", "HEAD") and "text/html" in Request(scope).headers.get("accept", "")


def shows_page(scope: Scope, routes: Iterable[BaseRoute]) -> bool:
    """Return whether a GET returns a page: for any path of the workbench, and in a browser also for unknown paths."""
    if is_page(scope["path"]):
        return True
    return _wants_page(scope) and all(route.matches(scope)[0] is Match.NONE for route in routes)


class Workbench:
    """Serves the built files in `dist`. Reads them at the first request, and again after a new build."""

    def __init__(self, dist: Path = DIST) -> None:
        self._dist = dist
        self._built: _Built | None = None
        self._turn = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Return the routes that serve the pages, /docs and the assets."""
        pages = [
            route
            for first in sorted(PAGES)
            for route in (Route(f"/{first}", self._page), Route(f"/{first}/{{rest:path}}", self._page))
            if first or route.path == "/"
        ]
        return [*pages, Route(_DOCS, self._page), Route(f"{_ASSETS}{{name}}", self._asset)]

    def not_found(self, other: ASGIApp) -> ASGIApp:
        """Return the ASGI application for unknown paths. Browsers get the 404 page; `other` answers other clients."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            shown = await self._page(Request(scope), 404) if _wants_page(scope) else other
            await shown(scope, receive, send)

        return answer

    async def _page(self, request: Request, status: int = 200) -> Response:
        built = await self._read()
        if built is None:
            return PlainTextResponse(_NOT_BUILT, 404)
        if request.url.path == _DOCS:
            return HTMLResponse(built.docs, headers={"Content-Security-Policy": _DOCS_POLICY})
        nonce = secrets.token_urlsafe(16)
        policy = {"Content-Security-Policy": built.policy.replace("{nonce}", nonce)}
        return HTMLResponse(built.page.replace("{{nonce}}", nonce), status, policy)

    async def _asset(self, request: Request) -> Response:
        built = await self._read()
        asset = built.assets.get(request.path_params["name"]) if built is not None else None
        if asset is None:
            raise NotFound("there is no such file; the page may be from an earlier version: reload it")
        headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
        content = asset.content
        if asset.is_gzipped and _takes_gzip(request):
            headers["Content-Encoding"] = "gzip"
        elif asset.is_gzipped:
            content = await asyncio.to_thread(gzip.decompress, content)
        return Response(content, media_type=asset.media_type, headers=headers)

    async def _read(self) -> _Built | None:
        # most requests find the build in memory, and are answered without a thread
        if self._built is None or self._built.stamp != _stamp(self._dist):
            async with self._turn:
                self._built = await asyncio.to_thread(_read, self._dist, self._built)
        return self._built


def _takes_gzip(request: Request) -> bool:
    given = request.headers.get("accept-encoding", "").lower().replace(" ", "")
    return any(one == "gzip" or (one.startswith("gzip;") and not one.endswith("q=0")) for one in given.split(","))


def _stamp(dist: Path) -> int | None:
    """Return the time of the current build, or None if there is no build."""
    try:
        return (dist / "index.html").stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _read(dist: Path, before: _Built | None) -> _Built | None:
    """Return the current build, or None if there is none. The page and its assets come from the same build."""
    stamp = _stamp(dist)
    if stamp is None:
        return None
    if before is not None and before.stamp == stamp:
        return before
    try:
        page, docs = ((dist / name).read_text("utf-8") for name in ("index.html", "docs.html"))
        assets = {file.name.removesuffix(".gz"): _read_asset(file) for file in (dist / "assets").iterdir()}
    except FileNotFoundError:
        return None
    return _Built(stamp, page, _POLICY.replace("{scripts}", _hashes(page)), docs, MappingProxyType(assets))


def _hashes(page: str) -> str:
    """Return the sources in a content security policy that allow only the scripts in this page."""
    digests = [hashlib.sha256(script.encode()).digest() for script in _SCRIPT.findall(page)]
    return "".join(f" 'sha256-{base64.b64encode(one).decode()}'" for one in digests)


def _read_asset(file: Path) -> _Asset:
    kind = file.name.removesuffix(".gz").rpartition(".")[2]
    media_type = _MEDIA_TYPES.get(kind, "application/octet-stream")
    return _Asset(media_type, file.read_bytes(), is_gzipped=file.suffix == ".gz")
