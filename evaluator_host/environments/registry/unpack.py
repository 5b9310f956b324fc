"""Unpacks the tar of a package set that came from elsewhere, without writing outside the folder that it goes to.

Not by `tarfile`'s data filter: Python before 3.11.4 (Debian 12) has none, and it lets hard links, a second file of the
same name and absolute paths (with the slash removed) pass, which a package set never holds.
"""

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from evaluator_host.environments.contents import outward_links
from evaluator_host.model.errors import PackagesFailed
from evaluator_host.sandbox.docker.image.package_tree import as_file

_BUFFER_BYTES: Final = 1024 * 1024
_ENTRIES: Final = 1_000_000


def unpack(pieces: Iterator[bytes], folder: Path, *, max_bytes: int) -> None:
    """Unpack the one folder that a tar holds, as `folder`, which must be empty.

    Links are made last, so that no file can be written through one.

    Args:
      pieces: The tar, as it comes.
      folder: Where to.
      max_bytes: Of all files together.

    Raises:
      PackagesFailed: it is no such tar, is larger, or contains an entry that no package set has.
    """
    links: dict[Path, str] = {}
    left = max_bytes
    try:
        with tarfile.open(fileobj=as_file(pieces), mode="r|") as tar:
            for count, member in enumerate(tar):
                left -= member.size
                if left < 0 or count > _ENTRIES:
                    raise PackagesFailed(f"the package set is larger than {max_bytes} bytes or {_ENTRIES} files")
                path = _inside(folder, member.name)
                if member.issym():
                    links[path] = member.linkname
                elif path != folder:
                    _write(tar, member, path)
    except tarfile.TarError as error:
        raise PackagesFailed(f"the package set is no whole tar: {error}") from error
    for path, target in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    if outward := outward_links(folder):
        raise PackagesFailed(f"{outward[0]} of the package set is a link that leads out of it")


def read_file(pieces: Iterator[bytes], *, max_bytes: int) -> bytes:
    """Return the content of the one file that a tar holds.

    Raises:
      PackagesFailed: it is no such tar, or the file is larger than `max_bytes`.
    """
    try:
        with tarfile.open(fileobj=as_file(pieces), mode="r|") as tar:
            member = tar.next()
            content = tar.extractfile(member) if member is not None and member.isreg() else None
            if member is None or content is None or member.size > max_bytes:
                raise PackagesFailed("the record of the package set is no file, or too large")
            return content.read()
    except tarfile.TarError as error:
        raise PackagesFailed(f"the record of the package set is no whole tar: {error}") from error


def _inside(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise PackagesFailed(f"{name!r} in the package set leads out of it")
    return folder.joinpath(*parts[1:])


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise PackagesFailed(f"{member.name!r} in the package set is neither a file, a folder nor a link")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(content, file, _BUFFER_BYTES)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
    os.utime(path, (member.mtime, member.mtime))  # compiled Python names that of its source
