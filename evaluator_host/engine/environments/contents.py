"""Reads an installed package set: digests of its files, which reveal changes, and the modules of its packages."""

import hashlib
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from evaluator_host.engine.system.tree import DEPTH, Entry, walk
from evaluator_host.types.errors import PackagesFailed

_MODULES_OF_ONE: Final = 3
_ENTRIES: Final = 1_000_000
# longest path inside a set, in bytes; with the path of the data directory it must stay below the kernel's 4,096
_PATH_BYTES: Final = 1024
_RECORD_BYTES: Final = 16 * 1024 * 1024  # largest list of files, in bytes: enough for 270,000 files, a line for each
_SUFFIXES: Final = (".py", ".so")


def digests(root: Path) -> dict[str, str]:
    """Map the path of every file in a folder to its digest `sha256:…`, or to `link:target` for a link.

    Also let every user read the files.
    """
    root.chmod(0o755)
    found: dict[str, str] = {}
    with closing(walk(root)) as entries:
        for entry in entries:
            if entry.is_folder:
                entry.chmod(0o755)
            else:
                found[entry.path] = _digest(entry)
    return found


def differences(root: Path, recorded: dict[str, str]) -> list[str]:
    """Compare the files in `root` with `recorded`, a result of `digests`; return the paths that differ."""
    try:
        present = digests(root)
    except OSError:
        return sorted(recorded)
    return sorted(path for path in present.keys() | recorded.keys() if present.get(path) != recorded.get(path))


def settle(root: Path) -> None:
    """Make installed files readable by all and writable by their owner; refuse entries that no sandbox may have.

    Raises:
      PackagesFailed: an entry is not a file, folder or link; an entry lies too deep, or its path is too long; a folder
        cannot be read; a link points outside `root`; or there are too many entries.
    """
    home = root.resolve()
    try:
        with closing(walk(root)) as entries:
            for count, entry in enumerate(entries, start=1):
                if count > _ENTRIES:
                    raise PackagesFailed(
                        f"The package set has more than {_ENTRIES:,} files: pin fewer or smaller packages."
                    )
                _settle_one(entry, home)
    except PermissionError as error:
        raise PackagesFailed(
            f"A package contains a folder that cannot be read ({error.filename!r}): pin another version."
        ) from error


def _settle_one(entry: Entry, home: Path) -> None:
    if entry.depth > DEPTH or len(os.fsencode(entry.path)) > _PATH_BYTES:
        raise PackagesFailed(
            f"A package nests folders more than {DEPTH} levels deep, or has a path of more than {_PATH_BYTES:,} bytes "
            f"({entry.path[:80]!r}…): pin another version."
        )
    if entry.is_folder:
        entry.chmod(0o755)
    elif entry.is_file:  # if the file is a hard link to a download, this changes the mode of the download, too
        entry.chmod(0o755 if entry.stat.st_mode & 0o111 else 0o644)
    elif not entry.is_link:
        raise PackagesFailed(
            f"A package contains {entry.path!r}, which is not a file, folder or link: pin another version."
        )
    elif not _stays(entry, home):
        raise PackagesFailed(
            f"A package contains a link to a place outside the package ({entry.path!r}): pin another version."
        )


def outward_links(root: Path) -> list[str]:
    """Return the symbolic links that are broken or point outside `root`: in a sandbox, they may have other targets."""
    home = root.resolve()
    return [entry.path for entry in walk(root) if entry.is_link and not _stays(entry, home)]


def _stays(link: Entry, home: Path) -> bool:
    try:
        # opening a link fails if it is broken or in a cycle
        handle = os.open(link.name, os.O_PATH | os.O_CLOEXEC, dir_fd=link.folder)
    except OSError:
        return False
    try:
        return Path(f"/proc/self/fd/{handle}").readlink().is_relative_to(home)
    finally:
        os.close(handle)


def python_modules(site: Path, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the importable modules of each distribution in `names`, according to the lists of files in `site`."""
    wanted = set(names)
    found: dict[str, tuple[str, ...]] = {}
    for folder in sorted(site.glob("*.dist-info")):
        name = canonicalize_name(folder.name.removesuffix(".dist-info").rpartition("-")[0])
        if name in wanted:
            found[name] = _modules(folder / "RECORD", name)
    return found


def _modules(record: Path, name: str) -> tuple[str, ...]:
    try:
        with record.open("rb") as file:
            lines = file.read(_RECORD_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    modules = {module for line in lines if (module := _module(line.rpartition(",")[0].rpartition(",")[0]))}
    tops = [module for module in modules if not any(parent in modules for parent in _parents(module))]
    public = [module for module in tops if not module.startswith("_")] or tops
    # the module with the package's name comes first, because the others are often tests or internals
    public.sort(key=lambda module: (canonicalize_name(module) != name, module.count("."), module))
    return tuple(public[:_MODULES_OF_ONE])


def _parents(module: str) -> Iterator[str]:
    return itertools.accumulate(module.split(".")[:-1], "{}.{}".format)


def _module(path: str) -> str | None:
    """Return the module that a path defines: `a.b` for `a/b/__init__.py`, `a` for `a.py`; None for `a/b.py`."""
    path = path.strip('"')
    parts = path.split("/")
    if not path.endswith(_SUFFIXES) or len(parts) > DEPTH:
        return None
    if parts[-1] == "__init__.py":
        parts = parts[:-1]
    elif len(parts) == 1:
        parts = [parts[0].partition(".")[0]]
    else:
        return None
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def _digest(entry: Entry) -> str:
    if entry.is_link:
        return f"link:{entry.target()}"
    mode = entry.stat.st_mode
    if not entry.is_file:  # reading a pipe would block forever
        return f"mode:{mode:o}"
    entry.chmod(stat.S_IMODE(mode) | 0o444)
    with entry.open() as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
