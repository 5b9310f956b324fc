"""Pins (exact package versions), and locks. A lock lists a set's packages with hashes, for one runtime and platform."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeAlias

from evaluator_host.types.evaluator import Language

_FORMAT: Final = 1

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""A function that gets a phase (`pulling`, `checking`), the number of finished packages, and the total if it is
known."""

RawPin: TypeAlias = str | Mapping[str, Any]
"""A pin as users write it: a string, or `{"name": …, "version": …}`."""


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """One package at one version, in canonical form: equal pins have equal strings.

    PEP 440 treats 2.1, 2.1.0 and v2.1.0.0 as the same version. `version` has three parts, as in most releases.
    """

    name: str
    version: str
    extras: tuple[str, ...] = ()
    language: Language = field(default=Language.PYTHON, compare=False)

    @property
    def text(self) -> str:
        """Return the pin as a string: `name[extra]==1.2.3`, or `@scope/name@1.2.3` for npm."""
        if self.language is not Language.PYTHON:
            return f"{self.name}@{self.version}"
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}=={self.version}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a string is not an exact pin.

    `hint` is the pin that was probably meant; no index was searched for it.
    """

    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class LockTarget:
    """The runtime and platform for which a package set is resolved: always Linux with glibc."""

    runtime: str  # version of Python, `3.13` or `3.13.2`; major version of Node, `24`
    machine: str = "x86_64"  # `x86_64` or `aarch64`
    glibc: tuple[int, int] = (2, 28)  # version of the runtime's C library; wheels that need a newer one do not load

    @property
    def platform(self) -> str:
        """Return the name of the platform, such as `linux-x86_64-glibc2.28`."""
        return f"linux-{self.machine}-glibc{self.glibc[0]}.{self.glibc[1]}"


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One package in a lock. `hashes` are `sha256:…` (pip) or `sha512-…` (npm); `dependencies` are package names."""

    name: str
    version: str
    requested: bool
    hashes: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """A resolved package set.

    It contains neither download addresses nor credentials, so that packages can come from any mirror.
    """

    language: Language  # Python or JavaScript; TypeScript counts as JavaScript
    target: LockTarget
    pins: tuple[Pin, ...]
    packages: tuple[LockedPackage, ...]  # all packages that are installed on the target, sorted by name
    text: str  # the tool's own lock: requirements with hashes for pip, `package-lock.json` (version 3) for npm
    # whether a package in the lock has no wheel, and must be built from its source, in a sandbox
    source_builds: bool = False
    # what users should know about a set that was resolved, such as an extra that does not exist
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return the digest of the package set: `sha256:…` over language, runtime, platform, sorted pins and lock."""
        parts = [self.language.value, self.target.runtime, self.target.platform, self.text]
        parts += [pin.text for pin in sorted(self.pins)]
        return "sha256:" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def to_json(self) -> str:
        return json.dumps({"format": _FORMAT, "digest": self.digest, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Lock":
        """Parse a stored lock.

        Raises:
          ValueError: the string is not a lock, or does not match its digest.
        """
        try:
            stored = json.loads(text)
            lock = cls._read(stored)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"This is not a stored lock ({type(error).__name__}).") from error
        if stored.get("format") != _FORMAT or stored.get("digest") != lock.digest:
            raise ValueError("The stored lock was changed, or written by another version of Evaluator Host.")
        return lock

    @classmethod
    def _read(cls, stored: dict[str, Any]) -> "Lock":
        language = Language(stored["language"])
        target = stored["target"]
        return cls(
            language=language,
            target=LockTarget(target["runtime"], target["machine"], (target["glibc"][0], target["glibc"][1])),
            pins=tuple(Pin(p["name"], p["version"], tuple(p["extras"]), language) for p in stored["pins"]),
            packages=tuple(
                LockedPackage(
                    p["name"], p["version"], bool(p["requested"]), tuple(p["hashes"]), tuple(p["dependencies"])
                )
                for p in stored["packages"]
            ),
            text=stored["text"],
            source_builds=bool(stored["source_builds"]),
            notes=tuple(stored["notes"]),
        )
