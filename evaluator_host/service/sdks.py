"""Which evaluators are written for an SDK that the host has light modules for, and what these need installed.

The code is not parsed here: a line that imports the SDK is enough to have the modules in its sandbox, where a line too
many does no harm.
"""

import re
from dataclasses import dataclass
from typing import Final

from packaging.utils import canonicalize_name

from evaluator_host.config import RUNTIMES_DIR
from evaluator_host.model import Contract, Evaluator, Language, Sdk
from evaluator_host.packages.locked import Lock, Target
from evaluator_host.packages.shipped import shipped_lock, shipped_pins

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_IMPORTS: Final = re.compile(
    rf"^[^\n#'\"]*\bimport\s[^\n#]*\b{Sdk.NEMO.module}\b|^\s*from\s+{Sdk.NEMO.module}\b", re.MULTILINE
)
_REAL: Final = frozenset({"nemo-platform", "nemo-evaluator-sdk"})  # distributions of the package itself
_NEEDED: Final = frozenset({"pydantic", "jinja2"})
_NEEDED_BY: Final = {"BLEUMetric": "sacrebleu", "ROUGEMetric": "rouge-score"}
_LOCK: Final = RUNTIMES_DIR / "python" / Sdk.NEMO / "requirements.lock"


@dataclass(frozen=True, slots=True)
class SdkNeeds:
    """Light modules for one evaluator.

    Attributes:
      missing: Names of packages that they need and the evaluator does not pin.
    """

    sdk: Sdk
    missing: frozenset[str]

    @property
    def pins(self) -> tuple[str, ...]:
        """What to add to the evaluator's own pins."""
        return tuple(pin.text for pin in shipped_pins(_LOCK, self.missing))

    def without(self, packages: tuple[str, ...]) -> tuple[str, ...]:
        """Return the evaluator's own among the pins of its set: it is the same evaluator, whatever the modules need."""
        return tuple(text for text in packages if text.partition("==")[0] not in self.missing)

    def lock(self, target: Target) -> Lock:
        """Return the lock of an evaluator that pins nothing itself."""
        return shipped_lock(_LOCK, self.missing, target)


def sdk_needs(evaluator: Evaluator) -> SdkNeeds | None:
    """Return what an evaluator needs of light modules; None when it is for no SDK, or pins the real one."""
    if evaluator.language is not Language.PYTHON:
        return None
    if evaluator.contract is not Contract.NEMO and not _imports(evaluator.code):
        return None
    pinned = {canonicalize_name(found[0]) for text in evaluator.packages if (found := _NAME.search(text))}
    if pinned & _REAL:
        return None
    wanted = _NEEDED | {package for name, package in _NEEDED_BY.items() if name in evaluator.code}
    return SdkNeeds(Sdk.NEMO, frozenset(wanted - pinned))


def _imports(code: str) -> bool:
    return Sdk.NEMO.module in code and _IMPORTS.search(code) is not None
