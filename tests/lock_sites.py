"""Makes locks of package sets, and package indexes whose answers a test chooses."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import Lock, LockTarget
from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.packages.resolve import resolve
from evaluator_host.types.evaluator import Language
from tests.answering import answering

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
TARGETS = {PYTHON: LockTarget("3.13"), JAVASCRIPT: LockTarget("24"), TYPESCRIPT: LockTarget("24")}


async def lock_of(raw: Sequence[Any], language: Language, index: IndexSettings, **options: Any) -> Lock:
    return await resolve(parse(raw, language), language, target=TARGETS[language], index=index, **options)


@dataclass
class Site:
    """The responses of an index, by path. With `user` the index asks for credentials, with `hang` it never answers, and
    with `status` every answer has that status.
    """

    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    user: str | None = None
    hang: threading.Event | None = None
    status: int | None = None
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, authorization: str | None) -> tuple[int, str, bytes]:
        self.asked.append(path)
        if self.hang:
            self.hang.wait(60)
        if self.status:
            return self.status, "text/plain", b""
        if self.user and authorization != "Basic " + base64.b64encode(self.user.encode()).decode():
            return 401, "text/plain", b""
        return (200, *self.files[path]) if path in self.files else (404, "text/plain", b"")


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    with answering(site.answer) as site.url:
        try:
            yield site
        finally:
            if site.hang:
                site.hang.set()


def python_project(site: Site, name: str, **files: bytes) -> None:
    links = []
    for file_name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        site.files[f"/files/{file_name}"] = ("application/octet-stream", content)
        links.append(f'<a href="/files/{file_name}#sha256={digest}">{file_name}</a>')
    site.files[f"/simple/{name}/"] = ("text/html", ("<!DOCTYPE html>" + "\n".join(links)).encode())


def wheel(name: str, requires: str = "") -> bytes:
    content = io.BytesIO()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n" + (
        f"Requires-Dist: {requires}\n" if requires else ""
    )
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{name}-1.0.0.dist-info/METADATA", metadata)
        archive.writestr(
            f"{name}-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.0.dist-info/RECORD", "")
    return content.getvalue()


def source_archive(name: str, marker: Path) -> bytes:
    """Return a package whose build writes a file, so that a test can see whether resolving the package runs the build."""
    backend = (
        f"import os, pathlib\npathlib.Path({str(marker)!r}).write_text(repr(dict(os.environ)))\n"
        "def prepare_metadata_for_build_wheel(directory, config=None):\n"
        f"    info = pathlib.Path(directory) / '{name}-1.0.0.dist-info'\n    info.mkdir()\n"
        f"    (info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0.0\\n')\n"
        "    return info.name\n"
        "def build_wheel(directory, config=None, metadata=None):\n    raise SystemExit('not needed')\n"
    )
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n",
    }
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for file_name, text in files.items():
            member = tarfile.TarInfo(f"{name}-1.0.0/{file_name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


def npm_project(site: Site, name: str, **more: Any) -> None:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(name.encode()).digest()).decode()
    dist = {"tarball": f"{site.url}/{name}/-/{name}-1.0.0.tgz", "integrity": integrity}
    version = {"name": name, "version": "1.0.0", "dist": dist, **more}
    document = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    site.files[f"/{name}"] = ("application/json", json.dumps(document).encode())


def with_user(url: str, user: str) -> str:
    return url.replace("://", f"://{user}@")
