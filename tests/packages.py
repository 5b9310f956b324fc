"""Makes real package archives, byte by byte: good and bad wheels, source archives and npm tarballs."""

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Files = Mapping[str, str | bytes]

BACKEND = """
import hashlib, json, os, pathlib, zipfile
NAME, VERSION = {name!r}, "1.0.0"
{body}
def _wheel(directory):
    info = f"{{NAME}}-{{VERSION}}.dist-info"
    files = {{f"{{info}}/METADATA": f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n",
             f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
             **made()}}
    files[f"{{info}}/RECORD"] = "".join(f"{{name}},,\\n" for name in files)
    file_name = f"{{NAME}}-{{VERSION}}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(directory) / file_name, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file_name
def build_wheel(directory, config=None, metadata=None):
    return _wheel(directory)
"""


@dataclass(frozen=True)
class Archive:
    name: str
    file_name: str
    content: bytes
    version: str = "1.0.0"
    manifest: dict[str, Any] = field(default_factory=dict)


def wheel(
    name: str, files: Files, *, version: str = "1.0.0", requires: str = "", links: Mapping[str, str] | None = None
) -> Archive:
    """Return a wheel with these files and a correct RECORD; `links` are symbolic links, stored as in zip archives."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    everything: dict[str, str | bytes] = {
        **files,
        f"{info}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},{_hash(content)},{len(_bytes(content))}\n" for path, content in everything.items())
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, target in (links or {}).items():
            entry = zipfile.ZipInfo(path)
            entry.create_system, entry.external_attr = 3, 0o120777 << 16
            archive.writestr(entry, target)
            record += f"{path},,\n"
        for path, text in everything.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return Archive(name, f"{name}-{version}-py3-none-any.whl", content.getvalue(), version)


def source_archive(name: str, body: str) -> Archive:
    """Return a source archive. `body` runs when the package is built; its function `made()` returns the wheel's files."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND.format(name=name, body=body),
        "setup.py": body,
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n",
    }
    content = tarball({f"{name}-1.0.0/{path}": text for path, text in files.items()})
    return Archive(name, f"{name}-1.0.0.tar.gz", content)


def npm_package(
    name: str, files: Files, *, manifest: Mapping[str, Any] | None = None, outside: Files | None = None,
    links: Mapping[str, str] | None = None,
) -> Archive:  # fmt: skip
    """Return an npm tarball. `outside` are files that are not put below `package/`; they come after the `links`."""
    described = {"name": name, "version": "1.0.0", "main": "index.js", **(manifest or {})}
    inner = {f"package/{path}": text for path, text in {"package.json": json.dumps(described), **files}.items()}
    content = tarball({**inner, **(outside or {})}, links=links)
    return Archive(name, f"{name.rpartition('/')[2]}-1.0.0.tgz", content, manifest=described)


def tarball(files: Files, *, links: Mapping[str, str] | None = None) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path, target in (links or {}).items():
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(_bytes(text)), 0o755
            archive.addfile(member, io.BytesIO(_bytes(text)))
    return content.getvalue()


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _hash(content: str | bytes) -> str:
    digest = hashlib.sha256(_bytes(content)).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")
