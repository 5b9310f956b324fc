"""Resolves pip pins with uv: wheels only, a hash for every file; no package code runs."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name
from packaging.version import Version

from evaluator_host.engine.packages.index import uv_workspace
from evaluator_host.engine.packages.lock import Lock, LockedPackage, LockTarget, Pin
from evaluator_host.engine.packages.pip.programs import PipPrograms
from evaluator_host.engine.packages.tools import Resolver, lacks_wheels, no_package, no_version, shorten, unreachable
from evaluator_host.engine.system.processes import Finished
from evaluator_host.types.errors import HostError, Misconfigured, PackagesFailed, Problem
from evaluator_host.types.evaluator import Language

_SOURCE: Final = "set.in"
_GLIBC_MINORS: Final = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)  # minor versions of glibc that uv knows
_PACKAGE: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)\s*\\?")
_HASH: Final = re.compile(r"\s+--hash=(?P<hash>sha(?:256|384|512):[0-9a-f]+)\s*\\?")
_VIA: Final = re.compile(r"\s+#\s+(?:via\s+)?(?P<name>[A-Za-z0-9][\w.-]*)?.*")
# The look-behind lets a match begin only at the start of a name. Packages choose this text, and matching from every
# character of a long name would take too long.
_NAME: Final = r"(?<![\w.-])(?P<name>[\w.-]++)"
_EXTRAS: Final = r"(?:\[[^\[\]]*+\])?"
_NO_VERSION: Final = re.compile(rf"there is no version of {_NAME}{_EXTRAS}==(?P<version>[^\s,]+)")
_NO_PACKAGE: Final = re.compile(rf"{_NAME} was not found in the package registry")
_NO_WHEEL: Final = re.compile(rf"{_NAME}{_EXTRAS}==(?P<version>[^\s=]++) has no (?:usable )?wheels")
_DENIED: Final = re.compile(r"lack of valid authentication|40[137] (?:Unauthorized|Forbidden|Proxy)", re.IGNORECASE)
_NO_ANSWER: Final = re.compile(
    r"Request failed|Failed to fetch|error sending request|dns error|timed out|certificate"
    r"|HTTP status (?:client|server)|Network connectivity is disabled",
    re.IGNORECASE,
)


async def resolve_pip(
    pins: Sequence[Pin], resolver: Resolver, *, sources: bool
) -> tuple[tuple[LockedPackage, ...], str, tuple[str, ...]]:
    """Resolve pip pins; return packages, lock text and notes.

    Args:
      pins: Canonical pins.
      resolver: Runs uv. If `sources` is true, it must use a sandbox, because uv then runs build scripts of packages.
      sources: Whether packages without a wheel may be built to learn their dependencies.

    Raises:
      PackagesFailed: no such package or version, no wheel, or a conflict; the message comes from uv.
      IndexUnavailable: the index does not answer.
    """
    finished = await _compile([pin.text for pin in pins], resolver, sources=sources)
    if finished.code != 0:
        raise await _failure(finished, pins, resolver)
    packages = await asyncio.to_thread(read_requirements, finished.stdout, {pin.name for pin in pins})
    text = await asyncio.to_thread(requirements_text, packages)
    return packages, text, tuple(_notes(finished.stderr, resolver))


async def newest_version(requirement: str, resolver: Resolver, *, lowest: bool = False) -> str | None:
    """Return the newest (or lowest) version that is in a range and has a wheel for the target, or None.

    Raises:
      IndexUnavailable: the index does not answer.
    """
    finished = await _compile([requirement], resolver, lowest=lowest, deps=False)
    if finished.code == 0:
        found = _PACKAGE.search(finished.stdout)
        return found["version"] if found else None
    if unanswered(finished.stderr):
        raise unreachable(last_cause(finished.stderr), resolver.index)
    return None


async def newest_together(pins: Sequence[str], newest: Mapping[str, str], resolver: Resolver) -> dict[str, str] | None:
    """Return the newest versions of packages that work together and with the pins, or None if there are none.

    `newest` contains the packages, each with the newest version to consider.

    Raises:
      IndexUnavailable: the index does not answer.
    """
    ranges = [f"{name}<={version}" for name, version in newest.items()]
    finished = await _compile([*pins, *ranges], resolver)
    if finished.code == 0:
        versions = {
            str(canonicalize_name(one["name"])): str(one["version"]) for one in _PACKAGE.finditer(finished.stdout)
        }
        return {name: versions[name] for name in newest}
    if unanswered(finished.stderr):
        raise unreachable(last_cause(finished.stderr), resolver.index)
    return None


async def _compile(
    requirements: Sequence[str],
    resolver: Resolver,
    *,
    sources: bool = False,
    lowest: bool = False,
    deps: bool = True,
) -> Finished:
    async with uv_workspace(resolver.index) as workspace:
        text = "".join(f"{line}\n" for line in requirements)
        await asyncio.to_thread((workspace.path / _SOURCE).write_text, text, "utf-8")
        flags = [] if sources else ["--only-binary", ":all:"]
        flags += ["--resolution", "lowest"] if lowest else []
        flags += [] if deps else ["--no-deps"]
        return await resolver.attempt(_command(flags, resolver), workspace)


def _command(flags: Sequence[str], resolver: Resolver) -> tuple[str, ...]:
    tools, target = resolver.tools, resolver.target
    return (
        str(tools.uv), "pip", "compile", _SOURCE, "--generate-hashes", "--no-config", "--no-header", "--no-sources",
        "--no-progress", "--color", "never", "--annotation-style", "split", "--python", str(tools.python),
        "--no-python-downloads", "--python-version", target.runtime, "--python-platform", platform_tag(target), *flags,
    )  # fmt: skip


def platform_tag(target: LockTarget) -> str:
    """Return uv's name for the newest manylinux platform that the target's C library supports (2.17 or newer)."""
    if target.machine not in {"x86_64", "aarch64"}:
        raise Misconfigured(
            f"Packages cannot be resolved for {target.machine}, only for x86_64 and aarch64; "
            "run the host on such a machine."
        )
    minor = max((known for known in _GLIBC_MINORS if (2, known) <= target.glibc), default=_GLIBC_MINORS[0])
    return f"{target.machine}-manylinux_2_{minor}"


def read_requirements(text: str, requested: set[str]) -> tuple[LockedPackage, ...]:
    """Return the packages in the requirements that uv prints (pins, hashes, comments); refuse addresses and options.

    Raises:
      PackagesFailed: a line has another form, or a package has no hash.
    """
    versions: dict[str, str] = {}
    hashes: dict[str, list[str]] = {}
    needed: dict[str, set[str]] = {}
    name = ""
    for line in filter(str.strip, text.splitlines()):
        if package := _PACKAGE.fullmatch(line):
            name = canonicalize_name(package["name"])
            versions[name] = package["version"]
            hashes[name] = []
        elif name and (digest := _HASH.fullmatch(line)):
            hashes[name].append(digest["hash"])
        elif name and (via := _VIA.fullmatch(line)):
            needed.setdefault(canonicalize_name(via["name"] or ""), set()).add(name)
        else:
            raise PackagesFailed(
                f"This host cannot read a line of uv's answer: {line.strip()[:120]}. Pin another version."
            )
    if unhashed := [name for name in versions if not hashes[name]]:
        raise PackagesFailed(
            f"The index has no files with hashes for {', '.join(unhashed)}. Pin another version or package."
        )
    return tuple(
        LockedPackage(name, versions[name], name in requested, tuple(sorted(hashes[name])), _sorted(needed, name))
        for name in sorted(versions)
    )


def _sorted(needed: Mapping[str, set[str]], name: str) -> tuple[str, ...]:
    return tuple(sorted(needed.get(name, ())))


def requirements_text(packages: Sequence[LockedPackage]) -> str:
    """Return the text of a requirements file with locked packages and their hashes, for uv to install."""
    lines = (" \\\n    --hash=".join([f"{package.name}=={package.version}", *package.hashes]) for package in packages)
    return "".join(f"{line}\n" for line in lines)


def _notes(stderr: str, resolver: Resolver) -> list[str]:
    warnings = (line.removeprefix("warning: ") for line in stderr.splitlines() if line.startswith("warning: "))
    return [shorten(warning, resolver.index) for warning in warnings]


async def _failure(finished: Finished, pins: Sequence[Pin], resolver: Resolver) -> HostError:
    said = finished.stderr
    if unanswered(said):
        return unreachable(last_cause(said), resolver.index)
    flat = " ".join(said.split())
    asked = {pin.name: pin for pin in pins}
    if (missing := _NO_PACKAGE.search(flat)) and missing["name"] in asked:
        check = "Check the name: it may differ from the name that is imported."
        return no_package(missing["name"], Language.PYTHON, index="index", check=check)
    for pattern in (_NO_VERSION, _NO_WHEEL):
        found = pattern.search(flat)
        if found and (pin := asked.get(canonicalize_name(found["name"]))):
            near = await _nearest(pin, resolver)
            if pattern is _NO_WHEEL:
                return NoWheel.for_pin(pin, resolver.target, near, source_only=await _is_source_only(pin, resolver))
            return no_version(pin, near, title="The nearest for this runtime")
    explanation = shorten(_explanation(said), resolver.index)
    if "No solution found" in said:
        if _NO_WHEEL.search(flat) or "has no usable wheels" in flat:
            return NoWheel(f"These packages cannot be installed without building one from source:\n{explanation}")
        return PackagesFailed(f"These packages cannot be installed together:\n{explanation}")
    return PackagesFailed(f"The packages cannot be resolved:\n{explanation}")


class NoWheel(PackagesFailed):
    """A package has no wheel for the target and could only be built from source."""

    @classmethod
    def for_pin(cls, pin: Pin, target: LockTarget, near: Sequence[str], *, source_only: bool | None) -> "NoWheel":
        """Return the error for a pin; it advises the user to pin a version in `near`, or to allow builds from source.

        `source_only` says whether the version has no wheel at all, for any Python and machine; None if that is unknown.
        """
        lacks = lacks_wheels(target, source_only=source_only)
        ways = [f"Pin {' or '.join(near)}, which has a wheel"] if near else []
        ways += ["choose another version of Python (`python`)"] if source_only is False else []
        ways += ["ask the operator to set allow_source_builds: the package is then built inside a sandbox"]
        to_do = ", or ".join(ways)
        detail = f"{pin.text} {lacks}, and building from source is off. {to_do[0].upper()}{to_do[1:]}."
        return cls(detail, problems=(Problem("packages", f"{pin.text} has no wheel", near[0] if near else None),))


async def _is_source_only(pin: Pin, resolver: Resolver) -> bool | None:
    """Return whether a version has no wheel at all, for any Python and machine; None if the index does not answer."""
    try:
        found = await PipPrograms().ask("versions", {"name": pin.name}, resolver)
    except HostError:
        return None
    return Version(pin.version) not in map(Version, found["with_wheels"])


def unanswered(said: str) -> bool:
    """Return whether uv failed because the index did not answer, not because the pins have no solution."""
    return bool(_DENIED.search(said)) or ("No solution found" not in said and bool(_NO_ANSWER.search(said)))


async def _nearest(pin: Pin, resolver: Resolver) -> list[str]:
    below = await newest_version(f"{pin.name}<{pin.version}", resolver)
    above = await newest_version(f"{pin.name}>{pin.version}", resolver, lowest=True)
    return [Pin(pin.name, version, pin.extras).text for version in (below, above) if version]


def _explanation(said: str) -> str:
    lines = [line for line in said.splitlines() if not line.startswith(("warning:", "hint:", "error: No solution"))]
    return "\n".join(lines).replace("  cause: ", "")


def last_cause(said: str) -> str:
    """Return the last cause in the chain of causes that uv's error output lists."""
    causes = [line.split(":", maxsplit=1)[1].strip() for line in said.splitlines() if line.startswith("  cause:")]
    return causes[-1] if causes else said


@lru_cache(maxsize=64)
def shipped_lock(file: Path, roots: frozenset[str], target: LockTarget) -> Lock:
    """Return a lock of the packages `roots` and their dependencies, in the versions that a requirements file pins."""
    known = _read(file)
    names = _needed(roots, known)
    packages = tuple(replace(known[name], requested=name in roots) for name in sorted(names))
    return Lock(Language.PYTHON, target, shipped_pins(file, roots), packages, requirements_text(packages))


@lru_cache(maxsize=64)
def shipped_pins(file: Path, roots: frozenset[str]) -> tuple[Pin, ...]:
    """Return pins of the packages `roots`, in the versions that a requirements file pins."""
    known = _read(file)
    return tuple(Pin(name, known[name].version) for name in sorted(roots))


@lru_cache(maxsize=4)
def _read(file: Path) -> dict[str, LockedPackage]:
    return {package.name: package for package in read_requirements(file.read_text("utf-8"), set())}


def _needed(roots: Collection[str], known: dict[str, LockedPackage]) -> set[str]:
    names: set[str] = set()
    left = list(roots)
    while left:
        name = left.pop()
        if name not in names:
            names.add(name)
            left.extend(known[name].dependencies)
    return names
