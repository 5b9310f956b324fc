"""Tries an installed set in a real sandbox: each requested package is imported once, and its time is noted.

A package that cannot be imported, or hangs, is a note and no failure: it may be there for its data or its command. Only
a set of which nothing at all can be imported is refused.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from evaluator_host.environments.contents import python_modules
from evaluator_host.errors import PackagesFailed, SandboxLost
from evaluator_host.model import Contract, Environment, Failed, Language, Limits, Policy, Returned, SandboxSpec
from evaluator_host.packages.pins import Pin
from evaluator_host.sandbox.base import Backend
from evaluator_host.sandbox.session import LoadOrder, Sandbox

_IMPORT_S: Final = 30.0
_GRACE_S: Final = 2.0
_MOUNT: Final = PurePosixPath("/opt/packages")  # where backends show a set to a sandbox
_LIMITS: Final = Limits(timeout_s=_IMPORT_S, memory_mb=1024, processes=64)
_IMPORT: Final = """
import importlib
import sys
import time

def main(module):
    started = time.perf_counter()
    importlib.import_module(module)
    spent_ms = (time.perf_counter() - started) * 1000
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {"ms": spent_ms, "files": [file for file in files if isinstance(file, str)]}
"""


@dataclass(slots=True)
class Health:
    """What imports: milliseconds by module, and a note for each that does not."""

    import_ms: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)  # Python files that these imports read, relative to the set


async def examine(environment: Environment, pins: Sequence[Pin], backend: Backend) -> Health:
    """Import every requested package of an installed set.

    Raises:
      PackagesFailed: none of them can be imported.
      SandboxUnavailable: no sandbox can be started.
    """
    if environment.path is None:
        return Health()
    if environment.language is Language.PYTHON:
        modules = python_modules(environment.path, [pin.name for pin in pins])
        health = await _python(environment, modules, backend)
    else:
        health = await _javascript(environment, [pin.name for pin in pins], backend)
    if health.notes and not health.import_ms:
        raise PackagesFailed("None of the packages can be imported here: " + "; ".join(health.notes[:5]))
    return health


async def _python(environment: Environment, modules: Mapping[str, Sequence[str]], backend: Backend) -> Health:
    health = Health()
    wanted = [module for names in modules.values() for module in names]
    sandbox: Sandbox | None = None
    try:
        for module in wanted:
            if sandbox is None or sandbox.ended:
                if sandbox is not None:
                    await sandbox.destroy()
                sandbox = await _start(environment, backend)
                await sandbox.load(_order(_IMPORT, Language.PYTHON))
            body = json.dumps({"named": {"module": module}, "exact": False}).encode()
            try:
                outcome = await sandbox.call(body, timeout_s=_IMPORT_S)
            except SandboxLost as error:
                health.notes.append(f"{module} cannot be imported: {error.detail}")
                continue
            if isinstance(outcome, Returned) and isinstance(outcome.value, dict):
                health.import_ms[module] = round(float(outcome.value["ms"]), 1)
                health.sources |= _own_sources(environment, outcome.value["files"])
            elif isinstance(outcome, Failed):
                health.notes.append(f"{module} cannot be imported: {_said(outcome)}")
    finally:
        if sandbox is not None:
            await sandbox.destroy()
    return health


def _own_sources(environment: Environment, said: Sequence[str]) -> set[str]:
    """Return those of the files a guest named that are sources of the set; what it says is not trusted."""
    root = environment.path
    found = set()
    for name in said if root is not None else ():
        relative = PurePosixPath(name).relative_to(_MOUNT) if name.startswith(f"{_MOUNT}/") else None
        if relative is None or ".." in relative.parts or relative.suffix != ".py" or root is None:
            continue
        if (root / relative).is_file() and not (root / relative).is_symlink():
            found.add(relative.as_posix())
    return found


async def _javascript(environment: Environment, names: Sequence[str], backend: Backend) -> Health:
    health = Health()
    for name in names:
        if name.startswith("@types/"):  # declarations only
            continue
        sandbox = await _start(environment, backend)
        started = time.perf_counter()
        try:
            code = f"import * as it from {json.dumps(name)};\nexport function main() {{ return typeof it; }}\n"
            loaded = await sandbox.load(_order(code, Language.JAVASCRIPT))
        except SandboxLost as error:
            health.notes.append(f"{name} cannot be imported: {error.detail}")
            continue
        finally:
            await sandbox.destroy()
        if isinstance(loaded, Failed):
            health.notes.append(f"{name} cannot be imported: {_said(loaded)}")
        else:
            health.import_ms[name] = round(loaded.load_ms or (time.perf_counter() - started) * 1000, 1)
    return health


async def _start(environment: Environment, backend: Backend) -> Sandbox:
    spec = SandboxSpec(environment.language, environment, memory_mb=_LIMITS.memory_mb, processes=_LIMITS.processes)
    sandbox = Sandbox(await backend.start(spec), backend=backend.name, spec=spec, grace_s=_GRACE_S)
    try:
        await sandbox.greet()
    except BaseException:
        await sandbox.destroy()
        raise
    return sandbox


def _order(code: str, language: Language) -> LoadOrder:
    return LoadOrder(
        code=code,
        language=language,
        contract=Contract.MAIN,
        entry=None,
        policy=Policy.NONE,
        limits=_LIMITS,
        timeout_s=_IMPORT_S,
    )


def _said(failed: Failed) -> str:
    error = failed.error
    return f"{error.type + ': ' if error.type else ''}{error.message}"[:300]
