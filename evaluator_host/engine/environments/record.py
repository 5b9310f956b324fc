"""Types that describe package sets: the record and key of a set, and the steps of a build."""

import hashlib
import json
import platform as machine
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from evaluator_host.engine.packages.lock import Lock, LockTarget, Pin
from evaluator_host.engine.sandbox.base import Platform
from evaluator_host.types.doc import Doc
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Environment, Language, Package

_FORMAT: Final = 1


class BuildStatus(StrEnum):
    """The state of a package set."""

    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"


class Step(StrEnum):
    """A step of a build; `ready` and `failed` end it."""

    RESOLVING = "resolving"
    DOWNLOADING = "downloading"
    INSTALLING = "installing"
    CHECKING = "checking"
    READY = "ready"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Return whether the build ends with this step."""
        return self in {Step.READY, Step.FAILED}


@dataclass(frozen=True, slots=True)
class BuildEvent:
    """One step of a build: how many packages are done, the total if known, and for `failed` the reason in `detail`."""

    step: Step
    done: int = 0
    total: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentReport:
    """The API's report on a package set. `digest` is null until packages are resolved; `key` is always set."""

    key: str
    digest: str | None
    status: Annotated[BuildStatus, Doc("`building`, `ready` or `failed`.")]
    language: Language
    runtime: str
    packages: Annotated[tuple[Package, ...], Doc("Everything that is installed; until the set is resolved, the pins.")]
    size_bytes: int = 0
    built_at: Annotated[str | None, Doc("UTC, ISO 8601.")] = None
    build_s: float | None = None
    import_ms: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lock: Annotated[str | None, Doc("Requirements with hashes (pip) or `package-lock.json` (npm).")] = None
    error: Annotated[str | None, Doc("Why the last build failed.")] = None


@dataclass(frozen=True, slots=True)
class Record:
    """The stored facts of an installed package set, kept beside its files.

    Attributes:
      key: Key of the set: `sha256:…` over its pins and runtime (`set_key`).
      digest: Digest of its lock, `sha256:…`.
      lock: Lock file of pip or npm; for a set in a registry, the result of `Lock.to_json`.
      import_ms: How many milliseconds the first import of each module took.
      notes: What users should know, for example that a module cannot be imported.
    """

    key: str
    digest: str
    language: Language
    runtime: str
    packages: tuple[Package, ...]
    lock: str
    size_bytes: int
    built_at: str
    build_s: float
    import_ms: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=1)

    def report(self) -> EnvironmentReport:
        """Return the API's report on the package set."""
        return EnvironmentReport(
            status=BuildStatus.READY, **{one.name: getattr(self, one.name) for one in fields(self)}
        )

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Parse a stored record.

        Raises:
          ValueError: the string is not a record, or is a record of another version.
        """
        try:
            stored: dict[str, Any] = json.loads(text)
            if stored.pop("format") != _FORMAT:
                raise ValueError("the record of the package set was written by another version of Evaluator Host")
            stored["language"] = Language(stored["language"])
            stored["packages"] = tuple(Package(**package) for package in stored["packages"])
            stored["notes"] = tuple(stored["notes"])
            return cls(**stored)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not the record of a package set ({type(error).__name__})") from error


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of verifying one installation: the files that differ, and whether the installation was repaired."""

    digest: str
    broken: tuple[str, ...]
    mended: bool = False
    error: str | None = None


def set_key(pins: Sequence[Pin], language: Language, target: LockTarget) -> str:
    """Return the key of a package set: `sha256:…` over language, runtime, platform and sorted pins."""
    shared = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
    parts = [shared.value, target.runtime, target.platform, *(pin.text for pin in sorted(pins))]
    return "sha256:" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def now() -> str:
    """Return the current time in the format of records."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def target_for(platform: Platform, language: Language, python: str | None = None) -> LockTarget:
    """Return the runtime for package sets of a language; `python` is None for the platform's own version."""
    runtime = (python or platform.python) if language is Language.PYTHON else platform.node
    return LockTarget(runtime, platform.machine, platform.glibc)


def require_fit(lock: Lock, own: LockTarget) -> None:
    """Refuse a lock that needs another interpreter or processor, or a newer C library, than the runtime has.

    Raises:
      PackagesFailed: the lock does not fit.
    """
    if (lock.target.runtime, lock.target.machine) == (own.runtime, own.machine) and lock.target.glibc <= own.glibc:
        return
    raise PackagesFailed(
        f"the package set is for {_described(lock.language, lock.target)}, and this host has "
        f"{_described(lock.language, own)}; pull a set from a host like this one, or install the same pins here"
    )


def _described(language: Language, target: LockTarget) -> str:
    name = "Python" if language is Language.PYTHON else "Node"
    return f"{name} {target.runtime} on {target.platform}"


def empty_environment(language: Language, python: str | None = None) -> Environment:
    """Return the environment without packages; if `python` is None, it has the backend's own version of Python."""
    shared = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
    key = f"{shared}\n{sys.platform}-{machine.machine()}\n"
    if python is not None:
        key += f"python {python}\n"
    return Environment(
        digest="sha256:" + hashlib.sha256(key.encode()).hexdigest(),
        language=shared,
        runtime=("python" if python is None else f"python {python}") if shared is Language.PYTHON else "node",
    )
