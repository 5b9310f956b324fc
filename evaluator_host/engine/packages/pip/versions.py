"""Lists a pip package's versions that a runtime can load.

This is a separate program, so that a slow index or a large page does not block a host. Its argument is a JSON file; it
prints `{"name", "versions": [newest, …], "with_wheels": [newest, …]}`. `versions` is null for an unknown package;
`with_wheels` has all versions that have a wheel for any Python and machine.
"""

import base64
import html
import json
import re
import resource
import ssl
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

_PAGE_BYTES: Final = 64 << 20  # maximum number of bytes to read from an index page; the largest pages are 10 MB
_MEMORY_BYTES: Final = 2 << 30
_INFLATED: Final = 31  # zlib's window size for gzip
_TIMEOUT_S: Final = 8.0
_ACCEPT: Final = "application/vnd.pypi.simple.v1+json, text/html;q=0.2"
_ANCHOR: Final = re.compile(r"<a\s([^>]*)>([^<]*)</a>", re.IGNORECASE)
_OLDEST_GLIBC: Final = 5
_LEGACY: Final = {"manylinux2014": 17, "manylinux2010": 12, "manylinux1": 5}


def main(given: Path) -> None:
    """Read `{"name", "index", "runtime", "machine", "glibc"}` from a JSON file; print the versions as JSON."""
    limit_memory()
    asked = json.loads(given.read_text("utf-8"))
    name = canonicalize_name(asked["name"])
    page = fetched(f"{asked['index'].rstrip('/')}/{name}/", asked)
    files = None if page is None else list(page)
    found = None if files is None else usable(files, asked["runtime"], asked["machine"], asked["glibc"])
    sys.stdout.write(json.dumps({"name": name, "versions": found, "with_wheels": with_wheels(files or ())}))


def limit_memory() -> None:
    """Limit this process to 2 GB of memory, because a large page may contain very many small values."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


@dataclass(frozen=True, slots=True)
class File:
    """A file of a package: its name, its address, and the Python versions that it supports."""

    name: str
    requires: str | None = None
    url: str = ""


def usable(files: Iterable[File], runtime: str, machine: str, glibc: list[int]) -> list[str]:
    """Return the versions with a wheel for a runtime, newest first, but all pre-releases after the final versions."""
    return [str(version) for version in sorted(_wheels(files, runtime, machine, glibc), key=_rank, reverse=True)]


def with_wheels(files: Iterable[File]) -> list[str]:
    """Return the versions that have a wheel for any Python and machine, in the order of `usable`."""
    found = {version for file in files if (version := _version(file.name, None)) is not None}
    return [str(version) for version in sorted(found, key=_rank, reverse=True)]


def newest_wheels(
    files: Iterable[File], runtime: str, machine: str, glibc: list[int], allowed: SpecifierSet
) -> tuple[Version, File] | None:
    """Return the newest allowed version with a wheel for a runtime, and this wheel, or None if there is none."""
    found = _wheels(files, runtime, machine, glibc)
    newest = max((one for one in found if allowed.contains(one, prereleases=True)), key=_rank, default=None)
    return None if newest is None else (newest, found[newest])


def _rank(version: Version) -> tuple[bool, Version]:
    return not version.is_prerelease, version


def _wheels(files: Iterable[File], runtime: str, machine: str, glibc: list[int]) -> dict[Version, File]:
    tags = frozenset(_tags(runtime, machine, glibc))
    wheels: dict[Version, File] = {}
    for file in files:
        version = _version(file.name, tags)
        if version is not None and version not in wheels and _takes(file.requires, runtime):
            wheels[version] = file
    return wheels


def _version(file_name: str, tags: frozenset[Tag] | None) -> Version | None:
    """Return the version of a wheel if it has one of the tags, or if `tags` is None; else return None."""
    if not file_name.endswith(".whl"):
        return None
    try:
        _, version, _, own = parse_wheel_filename(file_name)
    except InvalidWheelFilename:
        return None
    return None if tags is not None and own.isdisjoint(tags) else version


def _takes(requires: str | None, runtime: str) -> bool:
    try:
        return not requires or SpecifierSet(requires).contains(f"{runtime}.99" if runtime.count(".") == 1 else runtime)
    except InvalidSpecifier:
        return True


def _tags(runtime: str, machine: str, glibc: list[int]) -> Iterator[Tag]:
    major, minor = (int(part) for part in runtime.split(".")[:2])
    newest = glibc[1]
    platforms = [f"manylinux_2_{number}_{machine}" for number in range(newest, _OLDEST_GLIBC - 1, -1)]
    platforms += [f"{name}_{machine}" for name, needs in _LEGACY.items() if needs <= newest]
    platforms.append(f"linux_{machine}")
    yield from cpython_tags((major, minor), platforms=platforms)
    yield from compatible_tags((major, minor), interpreter=f"cp{major}{minor}", platforms=platforms)


def fetched(url: str, asked: dict[str, Any]) -> Iterator[File] | None:
    """Return the files that an index lists for a package, except withdrawn ones, or None for an unknown package."""
    try:
        with opened(url, asked, {"Accept": _ACCEPT, "Accept-Encoding": "gzip"}) as answer:
            body = answer.read(_PAGE_BYTES)
            if answer.headers.get("Content-Encoding") == "gzip":
                body = zlib.decompressobj(_INFLATED).decompress(body, _PAGE_BYTES)
            media_type, at = answer.headers.get_content_type(), answer.geturl()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
    return _listed(body, media_type, at)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and sends the credentials to the index's own host only."""

    def redirect_request(self, req: urllib.request.Request, *args: Any) -> urllib.request.Request | None:
        followed = super().redirect_request(req, *args)
        if followed is not None and not _is_same_host(req.full_url, followed.full_url):
            followed.remove_header("Authorization")
        return followed


def _is_same_host(one: str, other: str) -> bool:
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def opened(url: str, asked: dict[str, Any], headers: dict[str, str]) -> Any:
    """Open an address of the index, and return the response; credentials are sent only to the index's own host."""
    if asked.get("user") and _is_same_host(url, asked["index"]):
        pair = f"{asked['user']}:{asked.get('password') or ''}"
        headers = {**headers, "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    context = ssl.create_default_context(cafile=asked["authorities"])
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the operator's own address
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _Redirects)
    return opener.open(request, timeout=_TIMEOUT_S)


def _listed(body: bytes, media_type: str, at: str) -> Iterator[File]:
    if media_type.endswith("json"):
        for file in json.loads(body)["files"]:
            if not file.get("yanked"):
                yield File(str(file["filename"]), file.get("requires-python"), urljoin(at, str(file["url"])))
        return
    for attributes, text in _ANCHOR.findall(body.decode("utf-8", "replace")):
        if "data-yanked" not in attributes:
            requires = re.search(r'data-requires-python="([^"]*)"', attributes)
            address = re.search(r'href="([^"]*)"', attributes)
            url = urljoin(at, html.unescape(address[1])) if address else ""
            yield File(html.unescape(text.strip()), html.unescape(requires[1]) if requires else None, url)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
