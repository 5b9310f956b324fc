"""Computes the digest of an installed package set, and copies its files to and from a container engine as tars.

The digest and the tar list files with the same function, so the tar contains exactly the files in the digest. Files
are read in pieces, because sets of several hundred megabytes are common. To copy files out of an image, a container is
created but never started, so that nothing in the image runs.
"""

import contextlib
import hashlib
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, TypeAlias, cast

import docker
import docker.errors

from evaluator_host.engine.sandbox.docker.cleanup import LABEL_BOOT, LABEL_INSTANCE
from evaluator_host.engine.sandbox.linux.instance import boot_id, this_instance
from evaluator_host.engine.system import tree
from evaluator_host.types.errors import SandboxUnavailable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE_BYTES: Final = 256 * 1024
_BLOCK_BYTES: Final = 512  # size of a block of a tar file, in bytes
_HEADERS: Final = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
)
_HEADER_BYTES: Final = 1 << 20
_BUFFER_BYTES: Final = 1024 * 1024


# facts about an entry: its kind, whether it is executable, and the digest of its content (for a link, its target)
Facts: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, folder or link in a tree; `name` is its path from the root, `target` is where a link points."""

    name: str
    path: Path
    kind: bytes
    executable: bool = False
    target: str = ""
    size: int = 0
    mtime: int = 0


def entries(root: Path) -> Iterator[TreeEntry]:
    """Yield the entries of a tree, in the same order on every machine.

    Raises:
      SandboxUnavailable: the tree has an entry that is not a file, folder or link, such as a socket.
    """
    with contextlib.closing(tree.walk(root)) as found:
        listed = [_entry(root, one) for one in found]
    yield from sorted(listed, key=lambda one: one.name)


def tree_digest(root: Path) -> str:
    """Return `sha256:…` over names, contents, links and execute permissions; times and owners are ignored."""
    whole = hashlib.sha256()
    for name, (kind, executable, content) in tree_facts(root):
        facts = (kind, name, executable, content)
        whole.update(b"".join(len(fact.encode(*_BYTES)).to_bytes(8) + fact.encode(*_BYTES) for fact in facts))
    return f"sha256:{whole.hexdigest()}"


def tree_facts(root: Path) -> Iterator[tuple[str, Facts]]:
    """Yield the name of each entry in a tree, and the facts about it from which the digest is made."""
    for entry in entries(root):
        content = _content_digest(entry.path) if entry.kind == tarfile.REGTYPE else entry.target
        yield entry.name, (entry.kind.decode(), str(int(entry.executable)), content)


def tar_facts(pieces: Iterator[bytes]) -> Iterator[tuple[str, Facts]]:
    """Yield the same facts as `tree_facts`, from a tar of one folder.

    Raises:
      tarfile.TarError: the bytes are not a complete tar.
    """
    with tarfile.open(fileobj=as_file(pieces), mode="r|", tarinfo=BoundedHeaders) as tar:
        for member in tar:
            name = PurePosixPath(*PurePosixPath(member.name).parts[1:]).as_posix()
            if name == ".":
                continue
            file = tar.extractfile(member) if member.isreg() else None
            content = _read_digest(file) if file else member.linkname
            executable = not member.issym() and bool(member.mode & stat.S_IXUSR)
            yield name, (member.type.decode(), str(int(executable)), content)


def tar_stream(files: dict[str, bytes], *, trees: dict[str, Path]) -> Iterator[bytes]:
    """Yield a tar of a few small files and whole trees in pieces, without a whole copy on disk or in memory.

    Root owns all entries, only root may write them, and every user may read them. Modification times are kept, because
    compiled Python files record the modification time of their source.

    Args:
      files: Contents by name in the tar.
      trees: Folders to add whole, by their name in the tar.

    Raises:
      SandboxUnavailable: a file changed while it was read.
    """
    for name, content in files.items():
        yield _header(name, tarfile.REGTYPE, size=len(content))
        yield content + _padding(len(content))
    for prefix, root in trees.items():
        yield _header(prefix, tarfile.DIRTYPE, executable=True)
        for entry in entries(root):
            yield from _member(entry, f"{prefix}/{entry.name}")
    yield bytes(2 * _BLOCK_BYTES)


def as_file(pieces: Iterator[bytes]) -> IO[bytes]:
    """Return a read-only file object over an iterator of bytes; it cannot seek."""
    return cast("IO[bytes]", BufferedReader(_Pieces(pieces), _BUFFER_BYTES))


class BoundedHeaders(tarfile.TarInfo):
    """An entry in a tar from an untrusted image.

    Long names and attributes are refused, because `tarfile` would read them into memory as a whole.
    """

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _HEADERS and self.size > _HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size} bytes is larger than any that a package set needs")
        made: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return made


_BYTES: Final = ("utf-8", "surrogateescape")  # encoding of file names, which need not be valid UTF-8


def _entry(root: Path, found: tree.Entry) -> TreeEntry:
    name, about = found.path, found.stat
    path, mtime = root / name, int(about.st_mtime)
    if found.is_link:
        return TreeEntry(name, path, tarfile.SYMTYPE, target=found.target(), mtime=mtime)
    if found.is_folder:
        return TreeEntry(name, path, tarfile.DIRTYPE, executable=True, mtime=mtime)
    if not found.is_file:
        raise SandboxUnavailable(f"{path} is neither a file, a folder nor a link; build the package set again")
    executable = bool(about.st_mode & stat.S_IXUSR)
    return TreeEntry(name, path, tarfile.REGTYPE, executable=executable, size=about.st_size, mtime=mtime)


def _member(entry: TreeEntry, name: str) -> Iterator[bytes]:
    yield _header(
        name, entry.kind, executable=entry.executable, target=entry.target, size=entry.size, mtime=entry.mtime
    )
    if entry.kind != tarfile.REGTYPE:
        return
    sent = 0
    for piece in _pieces(entry.path):
        sent += len(piece)
        if sent > entry.size:
            break
        yield piece
    if sent != entry.size:
        raise SandboxUnavailable(f"{entry.path} changed while it was read; build the package set again")
    yield _padding(entry.size)


def _header(
    name: str, kind: bytes, *, executable: bool = False, target: str = "", size: int = 0, mtime: int = 0
) -> bytes:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o755 if executable else 0o644
    info.linkname = target
    info.size = size
    info.mtime = mtime
    return info.tobuf(tarfile.PAX_FORMAT, *_BYTES)


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK_BYTES)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _read_digest(file: IO[bytes]) -> str:
    whole = hashlib.sha256()
    while piece := file.read(_PIECE_BYTES):
        whole.update(piece)
    return whole.hexdigest()


def _content_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Pieces(RawIOBase):
    """A file object over an iterator of bytes; it cannot seek."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        room = memoryview(buffer).cast("B")
        size = min(len(room), len(self._rest))
        room[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """Reads the files inside an image."""

    client: docker.APIClient
    container: str

    @contextmanager
    def archive(self, path: str) -> Iterator[Iterator[bytes]]:
        """Yield a tar of the file or folder at `path`, in pieces. Raises `ENGINE_ERRORS`."""
        pieces, _ = self.client.get_archive(self.container, path)
        with contextlib.closing(pieces):
            yield iter(pieces)


@contextmanager
def open_image(client: docker.APIClient, image: str) -> Iterator[ImageFiles]:
    """Yield a reader for an image's files. Blocking.

    This creates a container. If this host dies, a later sweep removes the container.
    """
    labels = {LABEL_INSTANCE: this_instance(), LABEL_BOOT: boot_id()}
    made = client.create_container(image, command=["/nothing"], entrypoint=[], labels=labels, network_disabled=True)
    try:
        yield ImageFiles(client, str(made["Id"]))
    finally:
        with contextlib.suppress(docker.errors.APIError):
            client.remove_container(made["Id"], force=True, v=True)
