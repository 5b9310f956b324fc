"""Reads and checks the image in which a package set is stored in a container registry.

Nothing in a pulled image is executed here. The checks prove that a set is complete and matches its lock. The checks do
not protect against people who may write to the registry, because such people can publish other files with a genuine
lock. If others may write to a registry, pull by the digest that `push` returned (`…@sha256:…`).

Pulled tars are unpacked without `tarfile`'s data filter, because Python before 3.11.4 (Debian 12) does not have it. The
filter also accepts hard links, a second file of the same name and absolute paths (with the slash removed). A package
set never contains these.
"""

import asyncio
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

import docker.utils

from evaluator_host.engine.environments.contents import outward_links
from evaluator_host.engine.environments.record import Record, set_key
from evaluator_host.engine.packages.lock import Lock, Progress
from evaluator_host.engine.sandbox.docker.environment_images import LAYER_REPOSITORY
from evaluator_host.engine.sandbox.docker.image.package_tree import BoundedHeaders, as_file, tree_digest
from evaluator_host.engine.sandbox.docker.policy import IMAGE_PACKAGES
from evaluator_host.engine.system.tree import DEPTH, temporary_folder
from evaluator_host.types.errors import InvalidRequest, PackagesFailed

LABEL_SET: Final = "evaluator-host.package-set"
RECORD_PATH: Final = "/opt/environment.json"
FORMAT: Final = 1
# size limit of a record, in bytes; the lock of a thousand packages is a few megabytes long
RECORD_BYTES: Final = 64 * 1024**2
_BUFFER_BYTES: Final = 1024 * 1024
_ENTRIES: Final = 1_000_000
_NOT_OURS: Final = "; pull an image that `evaluator-host packages push` made"
# errors that `tarfile` and `os.utime` raise for a damaged tar
_DAMAGED: Final = (tarfile.TarError, RecursionError, ValueError, OverflowError)


Archive: TypeAlias = Callable[[str], AbstractContextManager[Iterator[bytes]]]
"""Yields a tar of the file or folder at a path in an image, in pieces."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """A pulled package set: its record, its folder, and the image name with the digest."""

    record: Record
    path: Path
    pinned: str


def split_reference(reference: str) -> tuple[str, str]:
    """Split an image name into repository and tag (or digest); the tag is `latest` by default.

    Raises:
      InvalidRequest: the reference is not an image name, or is the name of this host's own images.
    """
    repository, tag = docker.utils.parse_repository_tag(reference.strip())
    if not repository or re.search(r"\s", reference.strip()):
        raise InvalidRequest(
            f"{reference!r} is not an image name; an image name looks like registry.example:5000/team/scoring:1"
        )
    if repository.removeprefix("docker.io/") == LAYER_REPOSITORY:
        raise InvalidRequest(f"{LAYER_REPOSITORY} is reserved for this host's own images; choose another name")
    return repository, tag or "latest"


def take_out(archive: Archive, *, target: Path, digest: str | None, max_bytes: int, tell: Progress) -> Record:
    """Copy the record and files out of an image, check them, and move the files to `target`; return the record.

    If `digest` is None, any package set is accepted.
    """
    try:
        with temporary_folder(target.parent, ".pulled-") as stage:
            files = stage / "packages"
            files.mkdir()
            with archive(RECORD_PATH) as pieces:
                record, tree = _read_record(read_file(pieces, max_bytes=RECORD_BYTES))
            check_lock(record, digest=digest or record.digest)
            tell("extracting", 0, None)
            with archive(IMAGE_PACKAGES) as pieces:
                unpack(pieces, files, max_bytes=max_bytes)
            tell("checking", 0, None)
            if tree_digest(files) != tree:
                raise PackagesFailed("the files differ from those that were pushed; push the set again")
            if target.exists():
                raise PackagesFailed(f"{target} already exists")
            files.rename(target)
    except (OSError, ValueError) as error:
        raise PackagesFailed(f"the package set cannot be unpacked: {error}") from error
    return record


def check_lock(record: Record, *, digest: str) -> None:
    """Check that a record and its lock describe the package set with this digest.

    Raises:
      PackagesFailed: the record describes another set, or its lock is not valid.
    """
    try:
        lock = Lock.from_json(record.lock)
    except ValueError as error:
        raise PackagesFailed(f"the record of the package set has no valid lock: {error}; push the set again") from error
    if not digest == record.digest == lock.digest:
        raise PackagesFailed(f"this is the package set {lock.digest}, not {digest}; check the name of the image")
    locked = {(package.name, package.version) for package in lock.packages}
    recorded = {(package.name, package.version) for package in record.packages}
    key = set_key(lock.pins, lock.language, lock.target)
    if (record.key, record.language, recorded) != (key, lock.language, locked):
        raise PackagesFailed("the record of the package set does not match its lock; push the set again")


def _read_record(content: bytes) -> tuple[Record, str]:
    try:
        stored: dict[str, Any] = json.loads(content)
        if stored["format"] != FORMAT:
            raise PackagesFailed(
                "the package set was pushed by another version of this program; push it again with this version"
            )
        return Record.from_json(stored["record"]), str(stored["tree"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PackagesFailed(f"the record of the package set is damaged ({error}); push the set again") from error


def in_loop(progress: Progress | None) -> Progress:
    """Return a function that calls `progress` in this event loop; other threads may call it."""
    if progress is None:
        return lambda _phase, _done, _total: None
    loop = asyncio.get_running_loop()

    def tell(phase: str, done: int, total: int | None) -> None:
        loop.call_soon_threadsafe(progress, phase, done, total)

    return tell


class Room:
    """Limits for one tar, or for several tars together.

    Args:
      max_bytes: Maximum size of all files.
      found: Start of the error message; the limits follow.
      then: End of the error message; the limits precede it.
    """

    def __init__(self, max_bytes: int, found: str, then: str) -> None:
        self._bytes, self._entries = max_bytes, _ENTRIES
        self._refusal = f"{found} {max_bytes} bytes or {_ENTRIES} files{then}"

    def entries_of(self, tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        """Yield the entries of a tar.

        Raises:
          PackagesFailed: there are more entries or bytes than allowed; long headers count too.
        """
        for member in tar:
            self._bytes -= abs(member.size) + member.offset_data - member.offset - tarfile.BLOCKSIZE
            self._entries -= 1
            if self._bytes < 0 or self._entries < 0:
                raise PackagesFailed(self._refusal)
            yield member


def unpack(pieces: Iterator[bytes], folder: Path, *, max_bytes: int) -> None:
    """Unpack the only folder in a tar to `folder`, which must be empty.

    All files together may have at most `max_bytes`.

    Links are created last, so that nothing can be written through a link.

    Raises:
      PackagesFailed: the tar is damaged or too large, or has an entry that does not belong in a package set.
    """
    links: dict[Path, str] = {}
    room = Room(max_bytes, "the package set is larger than", "; push one with fewer packages")
    try:
        with tarfile.open(fileobj=as_file(pieces), mode="r|", tarinfo=BoundedHeaders) as tar:
            for member in room.entries_of(tar):
                path = _inside(folder, member.name)
                if member.issym():
                    links[path] = member.linkname
                elif path != folder:
                    _write(tar, member, path)
    except _DAMAGED as error:
        raise PackagesFailed(f"the package set's tar file is damaged ({error}); push the set again") from error
    for path in links:
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, target in links.items():
        path.symlink_to(target)
    if outward := outward_links(folder):
        raise PackagesFailed(f"{outward[0]} in the package set is a link to a place outside the set{_NOT_OURS}")


def read_file(pieces: Iterator[bytes], *, max_bytes: int) -> bytes:
    """Return the content of the only file in a tar.

    Raises:
      PackagesFailed: the tar is damaged or has other entries, or the file is larger than `max_bytes`.
    """
    try:
        with tarfile.open(fileobj=as_file(pieces), mode="r|", tarinfo=BoundedHeaders) as tar:
            member = tar.next()
            content = tar.extractfile(member) if member is not None and member.isreg() else None
            if member is None or content is None or member.size > max_bytes:
                raise PackagesFailed(f"the record of the package set is not a regular file, or is too large{_NOT_OURS}")
            return content.read()
    except _DAMAGED as error:
        raise PackagesFailed(
            f"the tar file with the record of the package set is damaged ({error}); push the set again"
        ) from error


def _inside(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if len(parts) > DEPTH + 1:
        raise PackagesFailed(f"{name[:80]!r}… in the package set is more than {DEPTH} folders deep{_NOT_OURS}")
    if not parts or parts[0] == "/" or ".." in parts:
        raise PackagesFailed(f"{name!r} in the package set is outside the set{_NOT_OURS}")
    return folder.joinpath(*parts[1:])


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise PackagesFailed(f"{member.name!r} in the package set is neither a file, a folder nor a link{_NOT_OURS}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(content, file, _BUFFER_BYTES)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
    os.utime(path, (member.mtime, member.mtime))  # compiled Python files record the modification times of their sources
