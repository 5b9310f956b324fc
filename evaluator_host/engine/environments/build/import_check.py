"""Imports each requested package of an installed package set once, in a sandbox, and measures how long that takes.

A package that raises an error when it is imported only gets a note: users may want only its data or its command, or a
system library may be missing. A package is refused if it hangs, ends its process, floods its output, or takes all
memory or processes. A set is refused if none of its packages can be imported.
"""

import asyncio
import contextlib
import itertools
import json
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from evaluator_host.engine.environments.build.addons import has_install_script, lacks_addon, manifest_of, way_out
from evaluator_host.engine.environments.build.remedies import PinsFor, lacking, with_pins, without_part
from evaluator_host.engine.environments.contents import python_modules
from evaluator_host.engine.packages.lock import Pin
from evaluator_host.engine.sandbox.base import Backend
from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.engine.sandbox.session import RunnerGaveUp, Sandbox
from evaluator_host.types.errors import HostBusy, PackagesFailed, Problem
from evaluator_host.types.evaluator import Contract, Environment, Json, Language, Limits, Policy, SandboxSpec
from evaluator_host.types.outcome import ErrorCode, Failed, Loaded, Logs, Returned

_IMPORT_S: Final = 30.0
_GRACE_S: Final = 2.0
_MOUNT: Final = PurePosixPath("/opt/packages")  # path of a set in a sandbox
_TOTAL_S: Final = 240.0  # longest time for all imports of a set, in seconds; a hundred packages take a minute
# how many times to try an import, each time in a new sandbox, if the machine has no processor time for it
_BUSY_TRIES: Final = 5
_LIMITS: Final = Limits(timeout_s=_IMPORT_S, memory_mb=1024, processes=64)
_HARMS: Final = {
    ErrorCode.TIMEOUT: f"does not end within {_IMPORT_S:g} s",
    ErrorCode.MEMORY_LIMIT: f"takes more than {_LIMITS.memory_mb} MB of memory",
    ErrorCode.PROCESS_LIMIT: f"starts more than {_LIMITS.processes} processes",
    ErrorCode.DISK_LIMIT: f"writes more than {_LIMITS.disk_mb} MB",
    ErrorCode.CRASHED: "ends the process that imports it",
}
_MOST_MS: Final = 1000 * _IMPORT_S
# maximum number of Python files to list for one import; torch with transformers reads about 3,000
_MOST_SOURCES: Final = 5_000
_PATH_CHARS: Final = 1_024
_ENDS: Final = ("SystemExit", "process.exit")
_T = TypeVar("_T")
_IMPORT: Final = """
import importlib
import sys
import time

def main(module):
    started = time.process_time()
    importlib.import_module(module)
    spent_ms = (time.process_time() - started) * 1000
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {"ms": spent_ms, "files": [file for file in files if isinstance(file, str)]}
"""


@dataclass(slots=True)
class ImportReport:
    """Import times in milliseconds by module, and a note for each module that cannot be imported."""

    spent_s: float = 0.0  # seconds of all imports together, as `linux.work_clock` counts them
    import_ms: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)  # Python files that these imports read, relative to the set
    # modules of other well-known packages that were missing when an import failed; the key is the note on that import
    lacks: dict[str, str] = field(default_factory=dict)
    in_parts: bool = False  # whether only sub-paths of a package can be imported, not the package by its name


async def check_imports(
    environment: Environment, pins: Sequence[Pin], backend: Backend, *, pins_for: PinsFor
) -> ImportReport:
    """Import every requested package of an installed package set; report import times and failed imports.

    `pins_for` finds pins for modules that a package imports although it does not declare a dependency on them.

    Raises:
      PackagesFailed: importing a package harms the process, or no package can be imported.
      SandboxUnavailable: no sandbox can be started.
      SandboxLost: a sandbox died for a reason other than the package.
      HostBusy: the machine had no processor time for an import, even after several tries.
    """
    if environment.path is None:
        return ImportReport()
    if environment.language is Language.PYTHON:
        modules = await asyncio.to_thread(python_modules, environment.path, [pin.name for pin in pins])
        health = await _python(environment, modules, backend)
    else:
        health = await _javascript(environment, [pin.name for pin in pins], backend)
    told = await with_pins(health.lacks, environment.language, pins_for)
    health.notes = [told[note][0] if note in told else note for note in health.notes]
    if health.notes and not health.import_ms and not health.in_parts:
        problems = tuple(Problem("packages", note, pin) for note, pin in told.values())
        detail = "None of the packages can be imported here: " + "; ".join(health.notes[:5])
        raise PackagesFailed(detail, problems=problems)
    return health


class ProgramSandbox:
    """Calls a Python program of the host in a sandbox, and starts a new sandbox when the old one has ended.

    Attributes:
      spent_s: Seconds that all calls took, as `linux.work_clock` counts them.

    Args:
      code: Source of the program, with a function `main`.
      environment: Environment with the packages that the program may import.
      backend: Backend of the sandbox.
      result_kb: Largest value that a call may return, in KB.
    """

    def __init__(self, code: str, environment: Environment, backend: Backend, *, result_kb: int) -> None:
        self.spent_s = 0.0
        self._request = _order(code, Language.PYTHON, result_kb)
        self._environment = environment
        self._backend = backend
        self._sandbox: Sandbox | None = None

    async def call(self, **arguments: Json) -> Returned | Failed:
        """Call `main` with these keyword arguments; return its value, or the failure.

        Raises:
          SandboxUnavailable, SandboxLost, HostBusy: see `check_imports`.
        """
        body = json.dumps({"named": arguments, "exact": False}).encode()
        return await _patiently(partial(self._call, body))

    async def _call(self, body: bytes) -> Returned | Failed:
        if self._sandbox is None or self._sandbox.ended:
            await self.aclose()
            self._sandbox = await _start(self._environment, self._backend)
            await self._sandbox.load(self._request)
        before_s = self._sandbox.worked_s
        outcome = await self._sandbox.call(body, timeout_s=_IMPORT_S)
        self.spent_s += self._sandbox.worked_s - before_s
        return outcome

    async def aclose(self) -> None:
        """Destroy the sandbox."""
        if self._sandbox is not None:
            await self._sandbox.destroy()


async def _python(environment: Environment, modules: Mapping[str, Sequence[str]], backend: Backend) -> ImportReport:
    health = ImportReport()
    async with contextlib.aclosing(
        ProgramSandbox(_IMPORT, environment, backend, result_kb=_LIMITS.result_kb)
    ) as program:
        for package, module in [(package, module) for package, names in modules.items() for module in names]:
            if program.spent_s > _TOTAL_S:
                health.notes.append(f"{module} was not checked, because checking the others took {_TOTAL_S:g} s")
                continue
            outcome = await program.call(module=module)
            if module == modules[package][0]:
                _refuse_harm(package, outcome, outcome.logs)
            if isinstance(outcome, Failed):
                _note(health, module, outcome, environment)
            else:
                await asyncio.to_thread(_measure, health, module, outcome, environment)
    return health


def _note(health: ImportReport, module: str, failed: Failed, environment: Environment) -> None:
    """Record a note that a module cannot be imported; if the cause is a missing module, record its name too."""
    note = f"{module} cannot be imported: {_said(failed)}"
    if (other := without_part(failed, environment)) is not None:
        note = f"{note} ({other})"
    health.notes.append(note)
    if (lacked := lacking(failed, environment)) is not None:
        health.lacks[note] = lacked


def _refuse_harm(package: str, outcome: Returned | Loaded | Failed, logs: Logs) -> None:
    harm = None
    if isinstance(outcome, Failed):
        ends = outcome.error.type in _ENDS
        harm = _HARMS[ErrorCode.CRASHED] if ends else _HARMS.get(outcome.error.code)
    if logs.truncated:
        harm = f"writes more than {_LIMITS.log_kb} KB to its output" + (f" and {harm}" if harm else "")
    if harm is not None:
        detail = f"Importing {package} {harm}: pin another version of it, or leave it out."
        raise PackagesFailed(detail, problems=(Problem("packages", f"importing {package} {harm}"),))


def _measure(health: ImportReport, module: str, outcome: Returned, environment: Environment) -> None:
    """Record the time and the files of an import.

    Both may be wrong, because the package's code runs in the process that measures them.
    """
    said = outcome.value if isinstance(outcome.value, dict) else {}
    spent_ms, files = said.get("ms"), said.get("files")
    if not isinstance(spent_ms, int | float) or not 0 <= spent_ms < _MOST_MS or not isinstance(files, list):
        health.notes.append(f"{module} changes the interpreter that imports it, so the time of its import is not known")
        spent_ms, files = outcome.run_ms, []
    health.import_ms[module] = round(float(spent_ms), 1)
    if environment.path is not None:
        health.sources.update(_own_sources(environment.path, files))


def _own_sources(root: Path, said: Sequence[object]) -> Iterator[str]:
    """Yield the paths in `said` that are Python files of the package set; `said` comes from untrusted code."""
    prefix = f"{_MOUNT}/"
    names = (name for name in said if isinstance(name, str) and len(name) <= _PATH_CHARS and name.endswith(".py"))
    for name in itertools.islice((name for name in names if name.startswith(prefix)), _MOST_SOURCES):
        relative = PurePosixPath(name.removeprefix(prefix))
        with contextlib.suppress(OSError, ValueError):  # the name is not a valid file name
            if not {"/", ".."} & {*relative.parts} and stat.S_ISREG((root / relative).lstat().st_mode):
                yield relative.as_posix()


async def _javascript(environment: Environment, names: Sequence[str], backend: Backend) -> ImportReport:
    health = ImportReport()

    async def load(code: str) -> Loaded | Failed:
        sandbox = await _start(environment, backend)
        try:
            return await sandbox.load(_order(code, Language.JAVASCRIPT))
        finally:
            health.spent_s += sandbox.worked_s
            await sandbox.destroy()

    for name in names:
        if name.startswith("@types/"):  # these packages have only type declarations, and nothing to import
            continue
        if health.spent_s > _TOTAL_S:
            health.notes.append(f"{name} was not checked, because checking the others took {_TOTAL_S:g} s")
            continue
        if environment.path is not None:
            await asyncio.to_thread(_refuse_addon, environment.path, name)
        started = time.perf_counter()
        code = f"import * as it from {json.dumps(name)};\nexport function main() {{ return typeof it; }}\n"
        loaded = await _patiently(partial(load, code))
        _refuse_harm(name, loaded, loaded.logs if isinstance(loaded, Failed) else Logs())
        if isinstance(loaded, Failed):
            _note(health, name, loaded, environment)
            if environment.path is not None:
                package = environment.path / "node_modules" / name
                health.in_parts |= await asyncio.to_thread(_has_parts, package)
                if await asyncio.to_thread(has_install_script, environment.path, name):
                    health.notes[-1] += " (it has an install script, which does not run here)"
        else:
            health.import_ms[name] = round(loaded.load_ms or (time.perf_counter() - started) * 1000, 1)
    return health


async def _patiently(attempt: Callable[[], Awaitable[_T]]) -> _T | Failed:
    """Return the result of `attempt`; try again when the machine was busy, and once when the runner was killed."""
    killed = False
    for _ in range(_BUSY_TRIES - 1):
        try:
            return await attempt()
        except HostBusy:
            continue
        # another program may have killed the runner; if the runner is killed twice, the import is the cause
        except RunnerGaveUp as error:
            if killed:
                return error.failed
            killed = True
    return await attempt()


def _has_parts(package: Path) -> bool:
    """Return whether an npm package exports sub-paths; importing such a package by its plain name may fail."""
    exports = manifest_of(package).get("exports")
    return isinstance(exports, dict) and any(key.startswith("./") and key != "./package.json" for key in exports)


def _refuse_addon(root: Path, name: str) -> None:
    if lacks_addon(root, name):
        reason = f"{name} has a native addon that its install script would build, and install scripts do not run here"
        raise PackagesFailed(
            f"{reason}. {way_out(name)[0].upper()}{way_out(name)[1:]}.",
            problems=(Problem("packages", reason, way_out(name)),),
        )


async def _start(environment: Environment, backend: Backend) -> Sandbox:
    spec = SandboxSpec(environment.language, environment, memory_mb=_LIMITS.memory_mb, processes=_LIMITS.processes)
    sandbox = Sandbox(await backend.start(spec), backend=backend.name, spec=spec, grace_s=_GRACE_S)
    try:
        await sandbox.greet()
    except BaseException:
        await sandbox.destroy()
        raise
    return sandbox


def _order(code: str, language: Language, result_kb: int = _LIMITS.result_kb) -> LoadRequest:
    return LoadRequest(
        code=code,
        language=language,
        contract=Contract.MAIN,
        entry=None,
        policy=Policy.NONE,
        limits=replace(_LIMITS, result_kb=result_kb),
        timeout_s=_IMPORT_S,
    )


def _said(failed: Failed) -> str:
    error = failed.error
    return f"{error.type + ': ' if error.type else ''}{error.message}"[:300]
