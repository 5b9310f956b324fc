"""The files of an installed set: their digests, by which tampering shows, and the modules that its packages bring."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.utils import canonicalize_name

_MODULES_OF_ONE: Final = 3
_SUFFIXES: Final = (".py", ".so")


def digests(root: Path) -> dict[str, str]:
    """Return `sha256` (or `link:target`) of every file below, by its path; and make all of it readable to any user."""
    found: dict[str, str] = {}
    for folder, names, files in os.walk(root):
        base = Path(folder)
        base.chmod(0o755)
        for name in sorted((*files, *(name for name in names if (base / name).is_symlink()))):
            path = base / name
            found[path.relative_to(root).as_posix()] = _digest(path)
    return found


def differences(root: Path, recorded: dict[str, str]) -> list[str]:
    """Return the paths that are changed, missing or new."""
    try:
        present = digests(root)
    except OSError:
        return sorted(recorded)
    return sorted(path for path in present.keys() | recorded.keys() if present.get(path) != recorded.get(path))


def size_bytes(root: Path) -> int:
    """Return the sum of the sizes of the files below; what vanishes meanwhile does not count."""
    total = 0
    for folder, _, files in os.walk(root):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - half the time of Path
            except OSError:
                continue
    return total


def outward_links(root: Path) -> list[str]:
    """Return links that lead out of the set: what they name inside a sandbox is not what was installed."""
    home = root.resolve()
    return [
        path.relative_to(root).as_posix()
        for path in _links(root)
        if not (path.parent.resolve() / path.readlink()).resolve().is_relative_to(home)
    ]


def python_modules(site: Path, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the modules that an import of each distribution means, by its own list of files.

    Args:
      site: Where they are installed.
      names: Canonical names of distributions.
    """
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
    """`a/b/__init__.py` is the package `a.b`; a file at the top is a module."""
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
