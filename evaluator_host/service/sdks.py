"""Finds the SDK that an evaluator is written for, and the packages that the light modules in its place need.

The code is not parsed: one line that imports the SDK is enough. A line that only looks like an import does no harm, as
light modules that nobody imports change nothing.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from evaluator_host.config.settings import RUNTIMES_DIR
from evaluator_host.dialects.base import Sdk
from evaluator_host.dialects.table import all_dialects, dialect_of
from evaluator_host.model.evaluator import Contract, Evaluator, Language, StandIn
from evaluator_host.packages.lock import Lock, Target
from evaluator_host.packages.shipped_locks import shipped_lock, shipped_pins
from evaluator_host.service.prepared import cleaned

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class SdkNeeds:
    """Light modules for one evaluator.

    Attributes:
      stand_in: The modules.
      missing: Names of packages that they need and the evaluator does not pin.
      shipped: The lock file that has the versions of these.
    """

    stand_in: StandIn
    missing: frozenset[str]
    shipped: Path

    @property
    def pins(self) -> tuple[str, ...]:
        """What to add to the evaluator's own pins."""
        return tuple(pin.text for pin in shipped_pins(self.shipped, self.missing))

    def without(self, packages: tuple[str, ...]) -> tuple[str, ...]:
        """Return the evaluator's own among the pins of its set: it is the same evaluator, whatever the modules need."""
        return tuple(text for text in packages if text.partition("==")[0] not in self.missing)

    def lock(self, target: Target) -> Lock:
        """Return the lock of an evaluator that pins nothing itself."""
        return shipped_lock(self.shipped, self.missing, target)


def sdk_needs(evaluator: Evaluator) -> SdkNeeds | None:
    """Return the light modules of an evaluator and their needs; None when it imports no SDK, or pins the real one."""
    if evaluator.language is not Language.PYTHON:
        return None
    sdk = _sdk_of(evaluator)
    if sdk is None:
        return None
    pinned = {canonicalize_name(found[0]) for text in evaluator.packages if (found := _NAME.search(text))}
    if pinned & sdk.real:
        return None
    wanted = sdk.needed | {package for name, package in sdk.needed_by.items() if name in evaluator.code}
    return SdkNeeds(sdk.stand_in, frozenset(wanted - pinned), RUNTIMES_DIR / "python" / sdk.lock)


def _sdk_of(evaluator: Evaluator) -> Sdk | None:
    """Return the SDK of the declared contract, else the first that the code imports."""
    if evaluator.contract is not Contract.AUTO and (declared := dialect_of(evaluator.contract).sdk) is not None:
        return declared
    sdks = (dialect.sdk for dialect in all_dialects() if dialect.sdk is not None)
    return next((sdk for sdk in sdks if _is_imported(sdk, evaluator)), None)


def _is_imported(sdk: Sdk, evaluator: Evaluator) -> bool:
    root = sdk.module.partition(".")[0]
    return root in evaluator.code and bool(_line(root).search(cleaned(evaluator.code, evaluator.language).code))


@lru_cache(maxsize=64)
def _line(module: str) -> re.Pattern[str]:
    """Return the pattern of a line that imports a module, or a module below it."""
    return re.compile(rf"^[^\n#'\"]*\bimport\s[^\n#]*\b{module}\b|^\s*from\s+{module}\b", re.MULTILINE)
