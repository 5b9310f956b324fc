"""Which evaluators are written for an SDK that the host has light modules for, and what these need installed.

The code is not parsed here: a line that imports the SDK is enough to have the modules in its sandbox, where a line too
many does no harm.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from evaluator_host.config.settings import RUNTIMES_DIR
from evaluator_host.model.evaluator import Contract, Evaluator, Language, Sdk
from evaluator_host.packages.lock import Lock, Target
from evaluator_host.packages.shipped_locks import shipped_lock, shipped_pins
from evaluator_host.service.prepared import cleaned

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class _Kind:
    """One SDK.

    Attributes:
      contract: That evaluators written for it have.
      real: Distributions of the package itself, and those that bring it along.
      needed: What the light modules import.
      needed_by: What they import besides for evaluators that mention a name.
    """

    sdk: Sdk
    contract: Contract
    real: frozenset[str]
    needed: frozenset[str]
    needed_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def lock(self) -> Path:
        """Of the packages that it needs."""
        return RUNTIMES_DIR / "python" / self.sdk / "requirements.lock"

    def is_for(self, evaluator: Evaluator) -> bool:
        """Whether the code imports it."""
        root = self.sdk.module.partition(".")[0]
        return root in evaluator.code and _imports(root, cleaned(evaluator.code, evaluator.language).code)


_KINDS: Final = (
    _Kind(
        Sdk.NEMO,
        Contract.NEMO,
        real=frozenset({"nemo-platform", "nemo-evaluator-sdk"}),
        needed=frozenset({"pydantic", "jinja2"}),
        needed_by={"BLEUMetric": "sacrebleu", "ROUGEMetric": "rouge-score", "cloudpickle": "cloudpickle"},
    ),
    _Kind(
        Sdk.UIPATH,
        Contract.UIPATH,
        real=frozenset({"uipath", "uipath-langchain", "uipath-llamaindex", "uipath-mcp"}),
        needed=frozenset({"pydantic", "opentelemetry-sdk"}),
    ),
)


@dataclass(frozen=True, slots=True)
class SdkNeeds:
    """Light modules for one evaluator.

    Attributes:
      missing: Names of packages that they need and the evaluator does not pin.
      shipped: The lock that these come from.
    """

    sdk: Sdk
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
    """Return what an evaluator needs of light modules; None when it is for no SDK, or pins the real one."""
    if evaluator.language is not Language.PYTHON:
        return None
    kind = next((kind for kind in _KINDS if evaluator.contract is kind.contract), None)
    kind = kind or next((kind for kind in _KINDS if kind.is_for(evaluator)), None)
    if kind is None:
        return None
    pinned = {canonicalize_name(found[0]) for text in evaluator.packages if (found := _NAME.search(text))}
    if pinned & kind.real:
        return None
    wanted = kind.needed | {package for name, package in kind.needed_by.items() if name in evaluator.code}
    return SdkNeeds(kind.sdk, frozenset(wanted - pinned), kind.lock)


@lru_cache(maxsize=8)
def _line(module: str) -> re.Pattern[str]:
    """Return what a line looks like that imports a module or what is below it."""
    return re.compile(rf"^[^\n#'\"]*\bimport\s[^\n#]*\b{module}\b|^\s*from\s+{module}\b", re.MULTILINE)


def _imports(module: str, code: str) -> bool:
    return _line(module).search(code) is not None
