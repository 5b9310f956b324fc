"""Finds this machine's Python interpreters by minor version: the one that runs the host, and others.

The host searches for another interpreter when an evaluator first requests it: in places that the operator named, on the
PATH, and among the interpreters that uv and pyenv installed. A program counts as an interpreter when it starts and
reports its version.
"""

import json
import platform
import stat
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.sandbox.base import Platform
from evaluator_host.types.errors import Misconfigured, SandboxUnavailable

MINORS: Final = ("3.11", "3.12", "3.13", "3.14")
_OLDEST_GLIBC: Final = (2, 28)  # glibc version assumed for wheels if the C library does not report its version
_RUN_S: Final = 20.0
_PROBE: Final = """
import json, sys, sysconfig
names = ("stdlib", "platstdlib")
base = {"installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
print(json.dumps({
    "version": sys.version.split()[0],
    "implementation": sys.implementation.name,
    "prefix": sys.base_prefix,
    "executable": getattr(sys, "_base_executable", sys.executable),
    "folders": [sysconfig.get_path(name, vars=base) for name in names],
    "library": sysconfig.get_config_var("INSTSONAME"),
    "shared": bool(sysconfig.get_config_var("Py_ENABLE_SHARED")),
}))
"""


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """The facts that a Python interpreter has reported about itself."""

    version: str  # full version, such as `3.13.2`
    prefix: Path  # base prefix of the interpreter
    executable: Path  # program of the interpreter, inside that prefix
    folders: tuple[Path, ...]  # folders of the standard library
    library: str | None  # name of the interpreter's shared library, if it has one
    shared: bool  # whether the interpreter needs that library

    @property
    def minor(self) -> str:
        """Return the interpreter's minor version, such as `3.13`."""
        return ".".join(self.version.split(".")[:2])


@cache
def own_python() -> PythonFacts:
    """Return the base interpreter of the running Python, not that of its virtual environment.

    Raises:
      Misconfigured: the interpreter is not in its own prefix.
    """
    # replace the paths of a virtual environment with those of its base interpreter
    base = {"installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    return _facts(
        {
            "version": sys.version.split()[0],
            "prefix": sys.base_prefix,
            "executable": getattr(sys, "_base_executable", sys.executable),
            "folders": [sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib")],
            "library": sysconfig.get_config_var("INSTSONAME"),
            "shared": bool(sysconfig.get_config_var("Py_ENABLE_SHARED")),
        }
    )


def require_glibc() -> None:
    """Check this machine's C library.

    Raises:
      SandboxUnavailable: the C library is not glibc. With another C library, such as Alpine's musl, few packages work.
    """
    name = platform.libc_ver()[0]
    if name != "glibc":
        raise SandboxUnavailable(
            f"this machine's C library is not glibc{f' but {name}' if name else ''} (Alpine Linux has musl), and the "
            "packages that evaluators pin are built for glibc: run the host on Debian, Ubuntu or Fedora"
        )


def host_platform() -> Platform:
    """Return the platform of sandboxes that use this machine's own interpreter and C library."""
    name, version = platform.libc_ver()
    parts = version.split(".")
    glibc = (int(parts[0]), int(parts[1])) if name == "glibc" and len(parts) > 1 else _OLDEST_GLIBC
    return Platform(f"{sys.version_info.major}.{sys.version_info.minor}", machine_name(platform.machine()), glibc)


def machine_name(reported: str) -> str:
    """Convert a processor's name, such as `amd64` or `arm64`, to `x86_64` or `aarch64` if it means the same."""
    low = reported.lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(low, low)


def run_python(program: Path, *arguments: str) -> bytes:
    """Run an interpreter of this machine without packages, and return its standard output. Blocking.

    Raises:
      OSError: the interpreter cannot be started.
      subprocess.SubprocessError: it failed, or took too long.
    """
    command = [str(program), "-I", "-S", *arguments]
    # trusted: the operator named it, or has it on the PATH
    return subprocess.run(command, capture_output=True, timeout=_RUN_S, check=True, env={}).stdout  # noqa: S603


class Pythons:
    """The Python interpreters of this machine, except the one that runs this host. Thread-safe.

    Args:
      named: Interpreters or folders with `bin/python3.13` that the operator named; they come first.
      search_path: Folders of the PATH.
      homes: Folders with a folder for each interpreter: `cpython-3.13.2-linux-x86_64-gnu`, `3.13.2`.
    """

    def __init__(
        self, named: Sequence[Path] = (), *, search_path: Sequence[Path] = (), homes: Sequence[Path] = ()
    ) -> None:
        self._named = tuple(named)
        self._search_path = tuple(search_path)
        self._homes = tuple(homes)
        self._lock = threading.Lock()
        self._found: dict[str, PythonFacts | None] = {}

    def find_version(self, minor: str) -> PythonFacts | None:
        """Return the interpreter of a minor version (`3.13`), or None. The first call may block for a second."""
        with self._lock:
            if minor not in self._found:
                self._found[minor] = self._search(minor)
            return self._found[minor]

    def minors(self) -> tuple[str, ...]:
        """Return the minor versions on this machine, including the host's version.

        The first call may block for seconds.
        """
        own = own_python().minor
        return tuple(minor for minor in MINORS if minor == own or self.find_version(minor) is not None)

    def _search(self, minor: str) -> PythonFacts | None:
        if minor not in MINORS:
            return None
        own = own_python()
        if minor == own.minor:
            return own
        found = (_probe(path) for path in dict.fromkeys(self._candidates(minor)) if _is(stat.S_ISREG, path))
        return next((facts for facts in found if facts is not None and facts.minor == minor), None)

    def _candidates(self, minor: str) -> Iterator[Path]:
        for named in self._named:
            yield named if _is(stat.S_ISREG, named) else named / "bin" / f"python{minor}"
        for folder in self._search_path:
            yield folder / f"python{minor}"
        for home in self._homes:
            for inner in sorted(home.glob(f"*{minor}.*"), reverse=True) if _is(stat.S_ISDIR, home) else ():
                yield inner / "bin" / f"python{minor}"


def _is(kind: Callable[[int], bool], path: Path) -> bool:
    """Return whether `kind`, such as `stat.S_ISREG`, is true for a path; False if this user may not see the path."""
    try:
        return kind(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _probe(program: Path) -> PythonFacts | None:
    """Return the facts that an interpreter reports, or None if it does not start, or if sandboxes could not use it."""
    try:
        said = json.loads(run_python(program, "-c", _PROBE))
        return _facts(said) if said["implementation"] == "cpython" else None
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError, Misconfigured):
        return None


def _facts(said: dict[str, Any]) -> PythonFacts:
    prefix = Path(said["prefix"]).resolve()
    minor = ".".join(said["version"].split(".")[:2])
    executable = (prefix / "bin" / f"python{minor}").resolve()
    if not executable.is_relative_to(prefix) or not executable.is_file():
        executable = Path(said["executable"]).resolve()
    if not executable.is_relative_to(prefix):
        raise Misconfigured(
            f"the interpreter {executable} is outside its own prefix {prefix}; install that Python again, or another"
        )
    folders = tuple(sorted({Path(folder).resolve() for folder in said["folders"]}))
    return PythonFacts(said["version"], prefix, executable, folders, said["library"], bool(said["shared"]))
