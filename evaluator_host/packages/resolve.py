"""Resolves a package set once, with hashes; every later build is from the lock, and the same tomorrow."""

from collections.abc import Sequence
from dataclasses import replace

from evaluator_host.model.errors import InvalidRequest, Misconfigured
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.index import IndexSettings
from evaluator_host.packages.lock import Lock, Progress, Target
from evaluator_host.packages.npm.resolve import resolve_npm
from evaluator_host.packages.pins import Pin
from evaluator_host.packages.pip.resolve import NoWheel, resolve_pip
from evaluator_host.packages.tools import Tools, installed_tools
from evaluator_host.system import processes
from evaluator_host.system.processes import Run


async def resolve(
    pins: Sequence[Pin],
    language: Language,
    *,
    target: Target,
    index: IndexSettings,
    allow_source_builds: bool = False,
    builder: Run | None = None,
    run: Run = processes.run,
    progress: Progress | None = None,
    tools: Tools | None = None,
) -> Lock:
    """Resolve pins to a lock. Nothing of any package runs on this host, nor is any configuration of its user read.

    Args:
      pins: From `pins.parse`.
      language: Of the evaluator.
      target: Runtime and platform it will be installed for.
      index: Where packages come from.
      allow_source_builds: Whether Python packages without a wheel may be taken; tried only when wheels do not suffice.
      builder: Runs a command inside a sandbox with network; needed with `allow_source_builds`, because uv runs a
        package's build script to learn what it needs. It is given no credentials.
      run: Runs the resolvers where no code of packages is run: a sandbox too, since what an index sends is not trusted.
      progress: Told of every phase.
      tools: Where uv and npm lie; by default what is installed.

    Raises:
      PackagesFailed: no such package or version, no wheel for the target, or a conflict; says what to do.
      IndexUnavailable: the index does not answer.
      Misconfigured: a tool or the CA file is missing, or source builds are allowed without a builder.
    """
    if allow_source_builds and builder is None:
        raise Misconfigured("Source builds need a builder sandbox: resolving them runs code of packages.")
    shared = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
    if any((pin.language is Language.PYTHON) is not (shared is Language.PYTHON) for pin in pins):
        raise InvalidRequest("Pip and npm pins cannot be in one set.")
    tell = progress or (lambda _phase, _done, _total: None)
    tell("resolving", 0, None)
    pins = tuple(sorted(replace(pin, language=shared) for pin in pins))
    tools = tools or installed_tools()
    if not pins:
        lock = Lock(shared, target, (), (), "")
    elif shared is Language.PYTHON:
        lock = await _python(pins, target=target, index=index, builder=builder, run=run, tools=tools)
    else:
        packages, text, notes = await resolve_npm(pins, target=target, index=index, tools=tools, run=run)
        lock = Lock(shared, target, pins, packages, text, notes=notes)
    tell("resolved", len(lock.packages), len(lock.packages))
    return lock


async def _python(
    pins: tuple[Pin, ...], *, target: Target, index: IndexSettings, builder: Run | None, run: Run, tools: Tools
) -> Lock:
    try:
        packages, text, notes = await resolve_pip(pins, target=target, index=index, tools=tools, run=run, sources=False)
        return Lock(Language.PYTHON, target, pins, packages, text, notes=notes)
    except NoWheel:
        if builder is None:
            raise
    packages, text, notes = await resolve_pip(
        pins, target=target, index=index.for_builder(), tools=tools, run=builder, sources=True
    )
    return Lock(Language.PYTHON, target, pins, packages, text, source_builds=True, notes=notes)
