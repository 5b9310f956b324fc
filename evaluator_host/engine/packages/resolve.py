"""Resolves a package set once to a lock with hashes; every later build installs the same files from that lock."""

from collections.abc import Sequence
from dataclasses import replace

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import Lock, LockTarget, Pin
from evaluator_host.engine.packages.npm.resolve import resolve_npm
from evaluator_host.engine.packages.pip.resolve import NoWheel, resolve_pip
from evaluator_host.engine.packages.tools import Resolver, Tools, installed_tools
from evaluator_host.engine.system import processes
from evaluator_host.engine.system.processes import Run
from evaluator_host.types.errors import InvalidRequest, Misconfigured
from evaluator_host.types.evaluator import Language


async def resolve(
    pins: Sequence[Pin],
    language: Language,
    *,
    target: LockTarget,
    index: IndexSettings,
    allow_source_builds: bool = False,
    builder: Run | None = None,
    run: Run = processes.run,
    tools: Tools | None = None,
) -> Lock:
    """Resolve pins, and return their lock. Runs no package code, and ignores the user's pip and npm configuration.

    Args:
      pins: From `pin_parser.parse`.
      language: Language of the evaluator.
      target: Runtime and platform for the set.
      index: Where packages come from.
      allow_source_builds: Whether packages without a wheel may be built from source, if wheels are not enough. Only for
        Python.
      builder: Runs a command inside a sandbox that has network access but no credentials; needed with
        `allow_source_builds`, because uv runs the build script of a package to learn its dependencies.
      run: Runs uv and npm for steps that do not run package code; also in a sandbox, because indexes are not trusted.
      tools: Paths of uv and npm; by default those installed with this host.

    Raises:
      PackagesFailed: no such package or version, no wheel for the target, or a conflict; the message says what to do.
      IndexUnavailable: the index does not answer.
      Misconfigured: a tool or the CA file is missing, or source builds are allowed without a builder.
    """
    if allow_source_builds and builder is None:
        raise Misconfigured(
            "Building packages from source needs a sandbox, because it runs code of the packages: install "
            "bubblewrap, or turn allow_source_builds off."
        )
    shared = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
    if any((pin.language is Language.PYTHON) is not (shared is Language.PYTHON) for pin in pins):
        raise InvalidRequest("Pins of pip and of npm cannot be in one package set: use two evaluators.")
    pins = tuple(sorted(replace(pin, language=shared) for pin in pins))
    resolver = Resolver(index, target, tools or installed_tools(), run)
    if not pins:
        lock = Lock(shared, target, (), (), "")
    elif shared is Language.PYTHON:
        lock = await _python(pins, resolver, builder)
    else:
        packages, text, notes = await resolve_npm(pins, resolver)
        lock = Lock(shared, target, pins, packages, text, notes=notes)
    return lock


async def _python(pins: tuple[Pin, ...], resolver: Resolver, builder: Run | None) -> Lock:
    sources = False
    try:
        packages, text, notes = await resolve_pip(pins, resolver, sources=False)
    except NoWheel:
        if builder is None:
            raise
        sources = True
        resolver = replace(resolver, index=resolver.index.for_builder(), run=builder, sources=True)
        packages, text, notes = await resolve_pip(pins, resolver, sources=True)
    return Lock(Language.PYTHON, resolver.target, pins, packages, text, source_builds=sources, notes=notes)
