"""Chooses packages for an evaluator's missing imports, if its `packages` contain `auto`.

The sandbox that loads the code reports its imports. Only well-known packages are chosen, each in an exact version, and
only if they contain the names that the code uses. The host finds this out without installing anything.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from evaluator_host.engine.packages.declared import declared_pins, declared_ranges, name_of_pin
from evaluator_host.engine.packages.providers import Provider
from evaluator_host.engine.packages.suggest import is_known, pin_for, undeclared_by, without_version
from evaluator_host.engine.service.files import path_of_module
from evaluator_host.engine.service.missing_imports import asks_models
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.engine.service.prepared import evaluator_digest
from evaluator_host.types.errors import HostError, IndexUnavailable, InvalidRequest, Problem
from evaluator_host.types.evaluator import AUTO_PACKAGES, Evaluator, Language
from evaluator_host.types.outcome import MissingImport

_KEPT: Final = 512  # maximum number of evaluators whose pins are cached
_NEWEST_S: Final = 3600.0  # chosen versions count as the newest for this many seconds
_FORBIDDEN: Final = "this host does not choose packages: pin them exactly (POST /v1/check lists them)"

MissingOf = Callable[[Evaluator, str], Awaitable[tuple[MissingImport, ...]]]
"""Takes an evaluator and a workspace; loads the code in a sandbox and returns the imports that nothing provides."""


class TogetherOf(Protocol):
    """Interface for searching the index for versions that work together."""

    async def __call__(
        self,
        pins: Sequence[str],
        new: Sequence[str],
        language: Language,
        python: str | None,
        *,
        ranges: Mapping[str, str],
        workspace: str,
    ) -> list[str]:
        """Return exact pins for the packages in `new`, in versions that work together and with `pins`.

        `ranges` maps names of packages to the version ranges from which versions are chosen if possible.
        """
        ...


class AutoPackages:
    """Replaces `auto` in an evaluator's packages with exact pins, and remembers them for an hour."""

    def __init__(self, lookup: PinLookup, missing_of: MissingOf, together_of: TogetherOf, *, allowed: bool) -> None:
        self._lookup = lookup
        self._missing_of = missing_of
        self._together_of = together_of
        self._allowed = allowed
        self._known: OrderedDict[tuple[str, str], tuple[asyncio.Task[tuple[str, ...]], float]] = OrderedDict()

    async def pinned(self, evaluator: Evaluator, workspace: str) -> Evaluator:
        """Return an evaluator with only exact pins; an evaluator without `auto` stays as it is.

        Raises:
          InvalidRequest: this host does not choose packages.
          IndexUnavailable: the index does not answer.
          HostError: the code cannot be loaded now.
        """
        if AUTO_PACKAGES not in evaluator.packages:
            return evaluator
        if not self._allowed:
            raise InvalidRequest(
                _FORBIDDEN, problems=(Problem("evaluator.packages", "this host does not choose packages"),)
            )
        own = tuple(pin for pin in evaluator.packages if pin != AUTO_PACKAGES)
        evaluator = replace(evaluator, packages=own)
        key = workspace, evaluator_digest(evaluator)
        task, at = self._known.get(key, (None, 0.0))
        if task is None or time.monotonic() - at > _NEWEST_S:
            task = asyncio.create_task(self._choose(evaluator, workspace))
            task.add_done_callback(lambda done: self._forget_failed(key, done))
            self._known[key] = task, time.monotonic()
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return replace(evaluator, packages=tuple(sorted({*own, *await asyncio.shield(task)})))

    def _forget_failed(self, key: tuple[str, str], done: asyncio.Task[tuple[str, ...]]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._known.pop(key, None)

    async def _choose(self, evaluator: Evaluator, workspace: str) -> tuple[str, ...]:
        missing = await self._missing_of(evaluator, workspace)
        needed = [replace(one, path=None) for one in missing if _is_needed(one, evaluator)]
        if evaluator.language is Language.PYTHON:
            needed += [replace(one, module=name, names=()) for one in needed for name in undeclared_by(one.module)]
        found = await self._lookup.providers(needed, evaluator, workspace)
        for one in needed:
            if (error := found[one].unanswered if one in found else None) is not None:
                raise _unanswered(one, error)
        pins = sorted({one.pin for one in found.values() if one.pin is not None and _may_choose(one)})
        language, python = evaluator.language, evaluator.python
        declared = declared_pins(evaluator.files, language) if evaluator.files else {}
        fixed = tuple(declared[name].pin for pin in pins if (name := name_of_pin(pin)) in declared)
        pins = [pin for pin in pins if name_of_pin(pin) not in declared]
        if not pins:
            return fixed
        given = (*evaluator.packages, *fixed)
        ranges = declared_ranges(evaluator.files, language) if evaluator.files else {}
        try:
            return (*fixed, *await self._together_of(given, pins, language, python, ranges=ranges, workspace=workspace))
        except IndexUnavailable:
            if len(pins) + len(given) > 1:
                raise
            return tuple(pins)


def _is_needed(one: MissingImport, evaluator: Evaluator) -> bool:
    """Return whether the code needs the well-known package that provides this import."""
    if one.optional or path_of_module(evaluator, one) is not None:
        return False
    if not evaluator.models and (asks_models(one.module) or _has_only_judges(one)):
        return False  # without a grant, the code cannot reach a model even if the package is installed
    package = pin_for(one.module, evaluator.language)
    return package is not None and is_known(without_version(package), evaluator.language)


def _has_only_judges(one: MissingImport) -> bool:
    return bool(one.names) and all(asks_models(f"{one.module}.{name}") for name in one.names)


def _may_choose(provider: Provider) -> bool:
    return provider.is_exact and not provider.is_own


def _unanswered(one: MissingImport, error: HostError) -> HostError:
    if not isinstance(error, IndexUnavailable):
        return error
    return IndexUnavailable(
        f"no package was chosen for {one.module}, since the package index does not answer; "
        f"pin it in `packages`, or try again later ({error.detail})"
    )
