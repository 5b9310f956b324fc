"""Finds the pins that missing imports need, once for all rows.

The index is searched in the background, and its answers are cached.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from evaluator_host.engine.packages.declared import DeclaredPin, declared_pins
from evaluator_host.engine.packages.providers import ImportedModule, Provider, named_provider
from evaluator_host.engine.packages.suggest import pin_for
from evaluator_host.engine.service.files import module_path, path_of_module
from evaluator_host.engine.service.stand_in_pins import stand_in_pin
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.outcome import MissingImport

_ASKED: Final = 20  # at most this many modules of an evaluator are looked up; hints on all others have no version
_UNDER_WAY: Final = 32  # maximum number of simultaneous index searches for all evaluators together
_KEPT: Final = 2000  # maximum number of modules whose pins are cached
_NEWEST_S: Final = 3600.0  # how long a version counts as the newest, in seconds
_UNKNOWN_S: Final = 60.0  # seconds until a search is repeated if the index did not answer or found nothing

_Key = tuple[Language, str | None, ImportedModule]


class ProvidersOf(Protocol):
    """Interface for searching the index for packages."""

    async def __call__(
        self, modules: Sequence[ImportedModule], language: Language, python: str | None, *, workspace: str
    ) -> list[Provider]:
        """Return the package that provides each module; `python` is a version, or None for the host's own version."""
        ...


class PinLookup:
    """Finds the pins for missing imports, and keeps them for later rows."""

    def __init__(self, providers_of: ProvidersOf) -> None:
        self._providers_of = providers_of
        # the provider of each module, with the time at which it was found
        self._known: OrderedDict[_Key, tuple[Provider, float]] = OrderedDict()
        self._under_way: dict[_Key, asyncio.Task[None]] = {}

    async def find(
        self,
        missing: Sequence[MissingImport],
        evaluator: Evaluator,
        workspace: str,
        *,
        patience_s: float | None = None,  # how long to wait for the index; None for as long as it takes
    ) -> tuple[MissingImport, ...]:
        """Return the imports, each with its pin, or with the path at which the evaluator's files would contain it.

        An import that may be a package or a file has both. If the index does not answer in time, the pin has no
        version; a later call may find one.
        """
        named = [replace(one, path=path_of_module(evaluator, one)) for one in missing]
        pins = {one: stand_in_pin(one.module, one.names, evaluator.language) for one in named if one.path is None}
        tested = {one: Provider(pin) for one, pin in pins.items() if pin is not None}
        others = [one for one in named if one not in tested]
        found = tested | await self.providers(others, evaluator, workspace, patience_s=patience_s)
        pairs = zip(named, missing, strict=True)
        told = (_told(one, found.get(one), evaluator.language, own=deep.path) for one, deep in pairs)
        declared = declared_pins(evaluator.files, evaluator.language) if missing else {}
        return tuple(_as_declared(one, declared, evaluator.language) for one in told)

    async def providers(
        self,
        missing: Sequence[MissingImport],
        evaluator: Evaluator,
        workspace: str,
        *,
        patience_s: float | None = None,
    ) -> dict[MissingImport, Provider]:
        """Return the provider of each import (except files of the evaluator), if it is found within `patience_s`."""
        language, python, now = evaluator.language, evaluator.python, time.monotonic()
        others = [one for one in missing if one.path is None]
        keys = {one: (language, python, ImportedModule(one.module, one.names)) for one in others}
        asked = list(dict.fromkeys(keys.values()))[:_ASKED]
        unknown = [key for key in asked if not self._is_known(key, now)]
        new = [key for key in unknown if key not in self._under_way]
        if new and len(set(self._under_way.values())) < _UNDER_WAY:
            task = asyncio.create_task(self._ask(new, language, python, workspace))
            self._under_way |= dict.fromkeys(new, task)
        waited = {self._under_way[key] for key in unknown if key in self._under_way}
        if waited:
            await asyncio.wait(waited, timeout=patience_s)
        return {one: self._known[key][0] for one, key in keys.items() if key in self._known}

    def _is_known(self, key: _Key, now: float) -> bool:
        found, at = self._known.get(key, (Provider(), 0.0))
        return key in self._known and now - at < (_NEWEST_S if found.is_exact else _UNKNOWN_S)

    async def _ask(self, keys: list[_Key], language: Language, python: str | None, workspace: str) -> None:
        modules = [module for _, _, module in keys]
        try:
            found = await self._providers_of(modules, language, python, workspace=workspace)
        except HostError as error:  # too many searches are waiting
            found = [replace(named_provider(one.module, language), unanswered=error) for one in modules]
        finally:
            for key in keys:
                self._under_way.pop(key, None)
        for key, one in zip(keys, found, strict=True):
            self._known[key] = one, time.monotonic()
            self._known.move_to_end(key)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)


def _as_declared(one: MissingImport, declared: Mapping[str, DeclaredPin], language: Language) -> MissingImport:
    """Return an import with the version that a file of the evaluator pins, if there is one."""
    package = pin_for(one.module, language) if one.path is None else None
    pinned = declared.get(package or "")
    return one if pinned is None else replace(one, pin=pinned.pin, problem=None)


def _told(one: MissingImport, found: Provider | None, language: Language, *, own: str | None) -> MissingImport:
    if one.path is not None:
        return one
    known = named_provider(one.module, language) if found is None else found
    path = own or module_path(one.module) if known.is_own and language is Language.PYTHON else None
    return replace(one, pin=known.pin, path=path, problem=known.problem)
