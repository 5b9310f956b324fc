"""Prepares evaluators for calls: installs their pins, and caches evaluators that were called recently.

To find the SDK that an evaluator imports, the host searches for import lines, without parsing the code. Such evaluators
get light modules (the host's own small modules) in place of the SDK. A line that only looks like an import does no
harm, because the code then does not import the light modules.
"""

import asyncio
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import orjson
from packaging.utils import canonicalize_name

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.contracts.base import Sdk
from evaluator_host.engine.contracts.table import all_dialects, dialect_of
from evaluator_host.engine.data_files import DataFiles
from evaluator_host.engine.environments.store import Environments, InstalledSet
from evaluator_host.engine.packages.lock import Lock, LockTarget
from evaluator_host.engine.packages.pip.resolve import shipped_lock, shipped_pins
from evaluator_host.engine.sandbox.runtimes import runtime_file
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.engine.service.prepared import Prepared, cleaned, prepare, require_fit
from evaluator_host.types.errors import InvalidPin
from evaluator_host.types.evaluator import Contract, Evaluator, Language, StandIn
from evaluator_host.types.json_values import is_small

_KEPT: Final = 512
_KEPT_BYTES: Final = 64 << 20
_BESIDE_CODE: Final = tuple(one.name for one in fields(Evaluator) if one.name != "code")
# maximum number of characters that are cleaned in the event loop; each takes up to 0.6 µs
_SMALL_CODE: Final = 16 << 10
_SMALL_CONFIG: Final = 500  # maximum number of values that are copied in the event loop; each takes 2 µs

_T = TypeVar("_T")
_Key: TypeAlias = tuple[str, str, bytes, bool, str | None]
SetUsed: TypeAlias = Callable[[str, str], None]
"""Takes a workspace and the digest of a package set that an evaluator of the workspace pins."""
_locked = lru_cache(maxsize=16)(Lock.from_json)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class SdkNeeds:
    """The host's light modules that an evaluator gets in place of a platform's SDK, and the packages that they need."""

    stand_in: StandIn  # the light modules
    missing: frozenset[str]  # names of packages that these modules need, but the evaluator does not pin
    shipped: Path  # lock file with the versions of these packages

    @property
    def pins(self) -> tuple[str, ...]:
        """Return the pins to add to the evaluator's own pins."""
        return tuple(pin.text for pin in shipped_pins(self.shipped, self.missing)) if self.missing else ()

    def without(self, packages: tuple[str, ...]) -> tuple[str, ...]:
        """Return `packages` without the pins that the host added."""
        return tuple(text for text in packages if text.partition("==")[0] not in self.missing)

    def lock(self, target: LockTarget) -> Lock:
        """Return a lock of the packages that the host adds, for an evaluator that pins nothing itself."""
        return shipped_lock(self.shipped, self.missing, target)


def sdk_needs(evaluator: Evaluator) -> SdkNeeds | None:
    """Return the host's modules that replace an evaluator's SDK; None if it uses no SDK, or pins the real package."""
    if evaluator.language is not Language.PYTHON:
        return None
    sdk = _sdk_of(evaluator)
    if sdk is None:
        return None
    pinned = {canonicalize_name(found[0]) for text in evaluator.packages if (found := _NAME.search(text))}
    if pinned & sdk.real:
        return None
    texts = _texts(evaluator)
    wanted = sdk.needed | {package for name, package in sdk.needed_by.items() if any(name in text for text in texts)}
    return SdkNeeds(sdk.stand_in, frozenset(wanted - pinned), runtime_file(f"python/{sdk.lock}"))


def _sdk_of(evaluator: Evaluator) -> Sdk | None:
    """Return the SDK of the declared contract, else an SDK that the code imports, else the SDK of a decorator in it."""
    if evaluator.contract is not Contract.AUTO and (declared := dialect_of(evaluator.contract).sdk) is not None:
        return declared
    sdks = [dialect.sdk for dialect in all_dialects() if dialect.sdk is not None]
    imported = next((sdk for sdk in sdks if _is_imported(sdk, evaluator)), None)
    return imported or next((sdk for sdk in sdks if _decorates(sdk, evaluator.code)), None)


def _is_imported(sdk: Sdk, evaluator: Evaluator) -> bool:
    roots = (sdk.module.partition(".")[0], *sdk.also)
    found = ((root, text) for text in _texts(evaluator) for root in roots if root in text)
    return any(_line(root).search(cleaned(text, evaluator.language).code) for root, text in found)


def _decorates(sdk: Sdk, code: str) -> bool:
    used = (f"@{one}" for one in sdk.decorators)
    return any(one in code and re.search(rf"^{re.escape(one)}\b", code, re.MULTILINE) for one in used)


def _texts(evaluator: Evaluator) -> tuple[str, ...]:
    return evaluator.code, *(text for path, text in evaluator.files.items() if path.endswith(".py"))


@lru_cache(maxsize=64)
def _line(module: str) -> re.Pattern[str]:
    """Return a regular expression for lines that import a module or one of its submodules."""
    # the group is atomic, so that a line with a million imports is searched only once
    plain = rf"^(?>[^\n#'\"]*?\bimport\s)[^\n#]*\b{module}\b"
    return re.compile(rf"{plain}|^[ \t\f]*+from\s++{module}\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Kept:
    prepared: Prepared
    needs: SdkNeeds | None
    python: str | None
    size_bytes: int


class Preparer:
    """Prepares each version of an evaluator only once for each workspace.

    The last 512 versions, up to 64 MB, are cached.
    """

    def __init__(
        self,
        settings: Settings,
        environments: Environments,
        pins: PinLookup,
        *,
        data: DataFiles,
        on_set_used: SetUsed | None = None,
    ) -> None:
        self._data = data
        self._settings = settings
        self._pins = pins
        self._environments = environments
        self._on_set_used = on_set_used
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._kept_bytes = 0
        # results of `_rest`, by the id of the evaluator, which is kept so that no other object gets its id
        self._rests: dict[int, tuple[Evaluator, bytes]] = {}

    async def prepare(
        self, evaluator: Evaluator, workspace: str, *, check: bool = False, lock: str | None = None
    ) -> Prepared:
        """Return an evaluator that is ready for calls; install its package set first if it is new.

        If `check` is true, the evaluator will only be loaded, and its imports listed. `lock` is a lock of its packages
        as JSON; without a lock, this host resolves the pins.

        Raises:
          InvalidRequest: the evaluator is not valid, for example because a limit is too large.
          InvalidPin: a package is not pinned exactly.
          PackagesFailed: the set cannot be resolved or installed.
          IndexUnavailable: the set is new, and the index does not answer.
        """
        rest = await self._rest(evaluator)
        key = None if rest is None else (workspace, evaluator.code, rest, check, lock)
        kept = self._kept.get(key) if key is not None else None
        if key is not None and kept is not None:
            self._kept.move_to_end(key)
        data = None
        if evaluator.data:
            require_fit(evaluator, self._settings)  # this also checks the paths of its files
            data = await asyncio.to_thread(self._data.lay_out, workspace, evaluator.data)
        # an evaluator with a package set is prepared again, because the set may have been reinstalled
        if kept is not None and kept.prepared.environment.path is None:
            return kept.prepared
        needs, python = (kept.needs, kept.python) if kept is not None else await self._needs(evaluator)
        started, known = time.perf_counter(), None
        if evaluator.packages or (needs is not None and needs.missing):
            known = await self._require_set(evaluator, needs, python=python, lock=lock, workspace=workspace)
            if evaluator.packages and self._on_set_used is not None:
                self._on_set_used(workspace, known.environment.digest)
            if kept is not None and kept.prepared.environment is known.environment:
                return kept.prepared
        environment_ms = (time.perf_counter() - started) * 1000
        copied = partial(deepcopy, evaluator.settings)  # deep copies, because the caller may change its configuration
        work = partial(
            prepare,
            replace(evaluator, settings=await _run(evaluator, copied)),
            settings=self._settings,
            pins=self._pins,
            workspace=workspace,
            check=check,
            known=known,
            stand_in=None if needs is None else needs.stand_in,
            python=python,
            data=data,
        )
        prepared = await _run(evaluator, work)
        if key is not None:
            self._keep(key, prepared, needs, python)
        return prepared if known is None else replace(prepared, environment_ms=environment_ms)

    async def _rest(self, evaluator: Evaluator) -> bytes | None:
        """Return everything except the code as JSON, or None if the settings cannot be written as JSON.

        The caller compares this JSON instead of the values, because 1, 1.0 and True are equal in Python.
        """
        kept = len(evaluator.code) <= _SMALL_CODE and not _may_change(evaluator)
        known = self._rests.get(id(evaluator)) if kept else None
        if known is not None:
            return known[1]
        rest = await _run(evaluator, partial(_beside_code, evaluator))
        if rest is not None and kept:
            if len(self._rests) >= _KEPT:
                self._rests.clear()
            self._rests[id(evaluator)] = evaluator, rest
        return rest

    async def _needs(self, evaluator: Evaluator) -> tuple[SdkNeeds | None, str | None]:
        """Return what an evaluator's SDK needs (or None), and its Python version (or None for the host's version)."""
        needs = await _run(evaluator, partial(sdk_needs, evaluator))
        if not evaluator.packages and needs is None and evaluator.python is None:
            return None, None
        require_fit(evaluator, self._settings)  # check this now, because installing packages may take minutes
        return needs, await self._environments.queries.python(evaluator.python)

    async def _require_set(
        self, evaluator: Evaluator, needs: SdkNeeds | None, *, python: str | None, lock: str | None, workspace: str
    ) -> InstalledSet:
        """Return an evaluator's installed package set; the result's `packages` are only the evaluator's own pins."""
        environments, language = self._environments, evaluator.language
        try:
            if lock is not None:
                known = await environments.require_locked(_locked(lock), workspace=workspace)
            elif needs is not None and not evaluator.packages:
                shipped = needs.lock(environments.queries.target(language, python))
                known = await environments.require_locked(shipped, workspace=workspace)
            else:
                packages = (*evaluator.packages, *(needs.pins if needs is not None else ()))
                known = await environments.require(packages, language, python, workspace=workspace)
        except InvalidPin as error:
            problems = tuple(replace(problem, field=f"evaluator.{problem.field}") for problem in error.problems)
            raise InvalidPin(error.detail, problems=problems) from error
        return known if needs is None else replace(known, packages=needs.without(known.packages))

    def _keep(self, key: _Key, prepared: Prepared, needs: SdkNeeds | None, python: str | None) -> None:
        texts = (*key[1:3], key[4] or "", prepared.source.code)
        kept = _Kept(prepared, needs, python, sum(sys.getsizeof(text) for text in texts))
        if (before := self._kept.pop(key, None)) is not None:
            self._kept_bytes -= before.size_bytes
        self._kept[key] = kept
        self._kept_bytes += kept.size_bytes
        while len(self._kept) > _KEPT or self._kept_bytes > _KEPT_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= oldest.size_bytes


async def _run(evaluator: Evaluator, work: Callable[[], _T]) -> _T:
    """Return the result of `work` on an evaluator, in a thread if the evaluator is large."""
    if evaluator.characters <= _SMALL_CODE and is_small(evaluator.settings.config, values=_SMALL_CONFIG):
        return work()
    return await asyncio.to_thread(work)


def _beside_code(evaluator: Evaluator) -> bytes | None:
    try:
        return orjson.dumps([getattr(evaluator, name) for name in _BESIDE_CODE])
    except TypeError:  # raised for an integer beyond 64 bits
        return None


def _may_change(evaluator: Evaluator) -> bool:
    """Return whether an evaluator has an object or list that its owner may change."""
    return bool(evaluator.settings.config or evaluator.files or evaluator.data or evaluator.secrets or evaluator.judge)
