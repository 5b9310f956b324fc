"""The sources of the runners: the host's own files, and files from plugins in other packages.

A plugin has such files in its own folder `runtimes/`, at the same paths as the host's files:
`runtimes/python/dialects/acme.py`, `runtimes/javascript/dialects/acme.mjs`.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.system.tree import temporary_folder, walk
from evaluator_host.types.errors import Misconfigured
from evaluator_host.types.plugin_folders import PluginFolder, plugin_folders

_LEFT_OUT: Final = ("__pycache__", "node_modules")


@cache
def added_files() -> tuple[tuple[str, Path], ...]:
    """Return the files that plugins in other packages add to sandboxes: the path below `runtimes/`, then the file.

    Raises:
      Misconfigured: a file is not at the path that belongs to the dialect of its plugin.
    """
    return tuple(found for folder in plugin_folders().values() if not folder.is_own for found in _files(folder))


def runtime_file(path: str) -> Path:
    """Return the file at a path below `runtimes/`: from the plugin that adds it, or else from this host."""
    return dict(added_files()).get(path, RUNTIMES_DIR / path)


@cache
def runtimes_dir(data_dir: Path) -> Path:
    """Return the folder of the runners' sources.

    With plugins, this is a folder in the data directory, with copies of all sources.

    Raises:
      Misconfigured: see `added_files`.
      OSError: the copy cannot be made.
    """
    added = added_files()
    if not added:
        return RUNTIMES_DIR
    target = data_dir / "toolchain" / f"runtimes-{_digest(added)}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(target.parent, ".stage-") as stage:
            made = stage / "made"
            own = ((name.as_posix(), RUNTIMES_DIR / name) for name in _sources(RUNTIMES_DIR))
            for name, path in (*own, *added):
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, made / name)
            made.chmod(0o755)  # the umask may forbid others to read, and sandboxes read as another user
            for entry in walk(made):
                entry.chmod(0o755 if entry.is_folder else 0o644)
            try:
                os.rename(made, target)  # noqa: PTH104 - Path.rename does not say that it refuses existing folders
            except OSError:
                if not target.is_dir():  # another process may have made the same folder first
                    raise
    return target


def _files(folder: PluginFolder) -> Iterator[tuple[str, Path]]:
    root, module = folder.path / "runtimes", folder.name.replace("-", "_")
    for name in _sources(root):
        path = root / name
        if name.parts[1:2] != ("dialects",) or name.parts[2].partition(".")[0] != module:
            raise Misconfigured(
                f"{path} of the plugin {folder.name} has no place in a sandbox: put it below "
                f"runtimes/python/dialects/{module} or runtimes/javascript/dialects/{module}.mjs"
            )
        yield name.as_posix(), path


def _sources(root: Path) -> list[PurePosixPath]:
    found = []
    for entry in walk(root) if root.is_dir() else ():
        entry.enter = entry.name not in _LEFT_OUT
        if not entry.is_folder:
            found.append(PurePosixPath(entry.path))
    return sorted(found)


def _digest(added: tuple[tuple[str, Path], ...]) -> str:
    whole = hashlib.sha256()
    own = ((name.as_posix(), RUNTIMES_DIR / name) for name in _sources(RUNTIMES_DIR))
    for name, path in (*own, *added):
        whole.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:16]
