"""The files of an installed set: their digests, which reveal tampering, and the modules of its packages."""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.utils import canonicalize_name

from evaluator_host.model.errors import PackagesFailed

_MODULES_OF_ONE: Final = 3
_ENTRIES: Final = 1_000_000
_SUFFIXES: Final = (".py", ".so")


def digests(root: Path) -> dict[str, str]:
    """Return `sha256:…` (or `link:target`) of every file in a folder, by path; make all readable to any user."""
    found: dict[str, str] = {}
    for folder, names, files in os.walk(root):
        base = Path(folder)
        base.chmod(0o755)
        for name in sorted((*files, *(name for name in names if (base / name).is_symlink()))):
            path = base / name
            found[path.relative_to(root).as_posix()] = _digest(path)
    return found


def differences(root: Path, recorded: dict[str, str]) -> list[str]:
    """Return the paths of files that are changed, missing or new."""
    try:
        present = digests(root)
    except OSError:
        return sorted(recorded)
    return sorted(path for path in present.keys() | recorded.keys() if present.get(path) != recorded.get(path))


def size_bytes(root: Path) -> int:
    """Return the total size of a folder's files; files that vanish meanwhile do not count."""
    total = 0
    for folder, _, files in os.walk(root):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - half the time of Path
            except OSError:
                continue
    return total


def settle(root: Path) -> None:
    """Make installed files readable by all and writable by their owner; refuse entries that sandboxes must not see.

    Raises:
      PackagesFailed: an entry is neither a file, a folder nor a link, a link leads out of the set, or there are too
        many entries.
    """
    count = 0
    for parent, names, files in os.walk(root, onerror=_refuse):
        for name in (*names, *files):
            count += 1
            _settle_one(Path(parent, name), root)
    if count > _ENTRIES:
        raise PackagesFailed(f"The set has more than {_ENTRIES:,} files: pin fewer or other packages.")
    if strange := outward_links(root):
        raise PackagesFailed(f"A package contains a link that leads out of it ({strange[0]!r}): pin another version.")


def _settle_one(path: Path, root: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        path.chmod(0o755)
    elif stat.S_ISREG(mode):
        wanted = 0o755 if mode & 0o111 else 0o644
        if stat.S_IMODE(mode) != wanted:  # a file that is linked to downloads is changed there too
            path.chmod(wanted)
    elif not stat.S_ISLNK(mode):
        name = path.relative_to(root).as_posix()
        raise PackagesFailed(f"A package contains {name!r}, which is no file, folder or link: pin another version.")


def _refuse(error: OSError) -> None:
    raise PackagesFailed(f"A package contains a folder that cannot be read ({error.filename!r}).") from error


def open_up(root: Path) -> None:
    """Give the owner write access to every folder inside, so that the tree can be removed."""
    with contextlib.suppress(OSError):
        root.chmod(0o700)
    for parent, names, _ in os.walk(root):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)


def discard(root: Path) -> None:
    """Remove a folder, even when folders inside it are read-only."""
    open_up(root)
    shutil.rmtree(root, ignore_errors=True)


def outward_links(root: Path) -> list[str]:
    """Return the symbolic links that lead out of the set: inside a sandbox they would name other files."""
    home = root.resolve()
    return [path.relative_to(root).as_posix() for path in _links(root) if not _stays(path, home)]


def _stays(link: Path, home: Path) -> bool:
    try:
        return (link.parent.resolve() / link.readlink()).resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # a loop of links: another exception in 3.13 than in 3.11
        return False


def python_modules(site: Path, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the importable modules of each distribution, from its own list of files."""
    wanted = set(names)
    found: dict[str, tuple[str, ...]] = {}
    for folder in sorted(site.glob("*.dist-info")):
        name = canonicalize_name(folder.name.removesuffix(".dist-info").rpartition("-")[0])
        if name in wanted:
            found[name] = _modules(folder / "RECORD", name)
    return found


def _modules(record: Path, name: str) -> tuple[str, ...]:
    try:
        lines = record.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    modules = {module for line in lines if (module := _module(line.rpartition(",")[0].rpartition(",")[0]))}
    tops = [m for m in sorted(modules) if not any(m.startswith(f"{other}.") for other in modules)]
    public = [module for module in tops if not module.startswith("_")] or tops
    # The package of its own name first: others beside it are often tests or internals.
    public.sort(key=lambda module: (canonicalize_name(module) != name, module.count("."), module))
    return tuple(public[:_MODULES_OF_ONE])


def _module(path: str) -> str | None:
    """Return the module of a file: `a.b` for `a/b/__init__.py`, `a` for `a.py`, None for other files in folders."""
    parts = PurePosixPath(path.strip('"')).parts
    if not parts or not parts[-1].endswith(_SUFFIXES):
        return None
    if parts[-1] == "__init__.py":
        parts = parts[:-1]
    elif len(parts) == 1:
        parts = (parts[0].partition(".")[0],)
    else:
        return None
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link:{path.readlink()}"
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):  # reading a pipe would wait for ever
        return f"mode:{mode:o}"
    if mode & 0o444 != 0o444:
        path.chmod(mode | 0o444)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _links(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(folder, name)
            if path.is_symlink():
                yield path
