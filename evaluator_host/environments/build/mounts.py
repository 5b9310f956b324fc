"""What of this machine a build sees: the tools, their libraries, and how names are resolved."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.packages.tools import Tools
from evaluator_host.sandbox.bubblewrap.mounts import PYTHON_HOME, Bind, find_libraries, find_python

COMPILERS: Final = tuple(Path(name) for name in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives"))
_NAME_SERVICE: Final = tuple(Path("/etc", name) for name in ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf"))


@dataclass(frozen=True, slots=True)
class BuildMounts:
    """Files to bind, links to make, folders to show empty, and where the interpreter's own libraries lie."""

    seen: tuple[Bind, ...]
    links: tuple[tuple[str, Path], ...]
    empty: tuple[Path, ...]
    library_path: Path | None


def build_mounts(tools: Tools, *, compilers: bool) -> BuildMounts:
    """Return what a build sees; with `compilers` all of the machine's programs."""
    python = find_python()
    libraries = find_libraries()
    seen = list(_compilers() if compilers else libraries.binds)
    links = list(_compiler_links() if compilers else libraries.links)
    seen += [_same(_own(bind.target)) for bind in python.binds]
    seen += [_same(tool) for tool in (tools.uv, tools.node, tools.npm)]
    seen += [_same(path) for path in _NAME_SERVICE if path.is_file()]
    return BuildMounts(
        seen=tuple(dict.fromkeys(seen)),
        links=tuple(links),
        empty=tuple(_own(folder) for folder in python.masked),
        library_path=None if python.library_path is None else _own(python.library_path),
    )


def _compilers() -> Iterator[Bind]:
    return (_same(path) for path in COMPILERS if path.is_dir() and not path.is_symlink())


def _compiler_links() -> Iterator[tuple[str, Path]]:
    return ((str(path.readlink()), path) for path in COMPILERS if path.is_symlink())


def _own(path: Path) -> Path:
    """Return where a path of a sandbox's interpreter lies on this host."""
    if path.is_relative_to(PYTHON_HOME):
        return Path(sys.base_prefix).resolve() / path.relative_to(PYTHON_HOME)
    return path


def _same(path: Path) -> Bind:
    return Bind(Path(os.path.realpath(path)), path)
