"""Resolves pip pins with uv: wheels only, hashes for every file, nothing of any package is run."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from packaging.utils import canonicalize_name

from evaluator_host.model.errors import HostError, Misconfigured, PackagesFailed, Problem
from evaluator_host.packages.common_names import close_name
from evaluator_host.packages.explain import attempt, shorten, unreachable
from evaluator_host.packages.index import IndexSettings, Workspace, uv_workspace
from evaluator_host.packages.lock import LockedPackage, Target
from evaluator_host.packages.pins import Pin
from evaluator_host.packages.tools import Tools
from evaluator_host.system.processes import Command, Finished, Run

_SOURCE: Final = "set.in"
_GLIBC_MINORS: Final = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)  # for which uv has a platform
_PACKAGE: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)\s*\\?")
_HASH: Final = re.compile(r"\s+--hash=(?P<hash>sha(?:256|384|512):[0-9a-f]+)\s*\\?")
_VIA: Final = re.compile(r"\s+#\s+(?:via\s+)?(?P<name>[A-Za-z0-9][\w.-]*)?.*")
_NO_VERSION: Final = re.compile(r"there is no version of (?P<name>[\w.-]+)(?:\[[^\]]*\])?==(?P<version>[^\s,]+)")
_NO_PACKAGE: Final = re.compile(r"(?P<name>[\w.-]+) was not found in the package registry")
_NO_WHEEL: Final = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?==(?P<version>\S+) has no (?:usable )?wheels")
_DENIED: Final = re.compile(r"lack of valid authentication|40[137] (?:Unauthorized|Forbidden|Proxy)", re.IGNORECASE)
_NO_ANSWER: Final = re.compile(
    r"Request failed|Failed to fetch|error sending request|dns error|timed out|certificate"
    r"|HTTP status (?:client|server)|Network connectivity is disabled",
    re.IGNORECASE,
)


async def resolve_pip(
    pins: Sequence[Pin], *, target: Target, index: IndexSettings, tools: Tools, run: Run, sources: bool
) -> tuple[tuple[LockedPackage, ...], str, tuple[str, ...]]:
    """Return packages, lock text and notes.

    Args:
      pins: Canonical pins.
      target: The Python the set is for.
      index: Where packages come from.
      tools: Where uv lies.
      run: Runs uv; with `sources` it must be a sandbox, since uv then runs build scripts of packages.
      sources: Whether packages without a wheel may be built to learn what they need.

    Raises:
      PackagesFailed: no such package or version, no wheel, or a conflict, in uv's words.
      IndexUnavailable: the index does not answer.
    """
    requirements = [pin.text for pin in pins]
    finished = await _compile(requirements, target=target, index=index, tools=tools, run=run, sources=sources)
    if finished.code == 0:
        packages = read_requirements(finished.stdout, {pin.name for pin in pins})
        return packages, requirements_text(packages), tuple(_notes(finished.stderr, index))
    raise await _failure(finished, pins, target=target, index=index, tools=tools, run=run)


async def newest(
    requirement: str, *, target: Target, index: IndexSettings, tools: Tools, run: Run, lowest: bool = False
) -> str | None:
    """Return the newest (or lowest) version of a range that has a wheel for the target; None when there is none.

    Raises:
      IndexUnavailable: the index does not answer.
    """
    finished = await _compile(
        [requirement], target=target, index=index, tools=tools, run=run, lowest=lowest, deps=False
    )
    if finished.code == 0:
        found = _PACKAGE.search(finished.stdout)
        return found["version"] if found else None
    if unanswered(finished.stderr):
        raise unreachable(last_cause(finished.stderr), index)
    return None


async def _compile(
    requirements: Sequence[str], *, target: Target, index: IndexSettings, tools: Tools, run: Run,
    sources: bool = False, lowest: bool = False, deps: bool = True,
) -> Finished:  # fmt: skip
    with uv_workspace(index) as workspace:
        (workspace.path / _SOURCE).write_text("".join(f"{line}\n" for line in requirements), "utf-8")
        flags = [] if sources else ["--only-binary", ":all:"]
        flags += ["--resolution", "lowest"] if lowest else []
        flags += [] if deps else ["--no-deps"]
        return await attempt(_command(flags, target, tools, workspace), index, run)


def _command(flags: Sequence[str], target: Target, tools: Tools, workspace: Workspace) -> Command:
    argv = (
        str(tools.uv), "pip", "compile", _SOURCE, "--generate-hashes", "--no-config", "--no-header", "--no-sources",
        "--no-progress", "--color", "never", "--annotation-style", "split", "--python", str(tools.python),
        "--no-python-downloads", "--python-version", target.runtime, "--python-platform", platform_tag(target), *flags,
    )  # fmt: skip
    return Command(argv, workspace.path, workspace.environment)


def platform_tag(target: Target) -> str:
    """Uv's name for the newest manylinux the target's C library loads; older than 2.17 has no wheels at all."""
    if target.machine not in {"x86_64", "aarch64"}:
        raise Misconfigured(f"Packages cannot be resolved for {target.machine}, only for x86_64 and aarch64.")
    minor = max((known for known in _GLIBC_MINORS if (2, known) <= target.glibc), default=_GLIBC_MINORS[0])
    return f"{target.machine}-manylinux_2_{minor}"


def read_requirements(text: str, requested: set[str]) -> tuple[LockedPackage, ...]:
    """Read uv's requirements: only pinned names, hashes and comments may appear, never an address or an option.

    Raises:
      PackagesFailed: something else does.
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
            raise PackagesFailed(f"The set resolves to something that is no pinned package: {line.strip()[:120]}")
    if unhashed := [name for name in versions if not hashes[name]]:
        raise PackagesFailed(f"The index has no files with hashes of {', '.join(unhashed)}.")
    return tuple(
        LockedPackage(name, versions[name], name in requested, tuple(sorted(hashes[name])), _sorted(needed, name))
        for name in sorted(versions)
    )


def _sorted(needed: Mapping[str, set[str]], name: str) -> tuple[str, ...]:
    return tuple(sorted(needed.get(name, ())))


def requirements_text(packages: Sequence[LockedPackage]) -> str:
    """Return requirements with hashes, as uv installs them."""
    lines = (" \\\n    --hash=".join([f"{package.name}=={package.version}", *package.hashes]) for package in packages)
    return "".join(f"{line}\n" for line in lines)


def _notes(stderr: str, index: IndexSettings) -> list[str]:
    warnings = (line.removeprefix("warning: ") for line in stderr.splitlines() if line.startswith("warning: "))
    return [shorten(warning, index) for warning in warnings]


async def _failure(
    finished: Finished, pins: Sequence[Pin], *, target: Target, index: IndexSettings, tools: Tools, run: Run
) -> HostError:
    said = finished.stderr
    if unanswered(said):
        return unreachable(last_cause(said), index)
    flat = " ".join(said.split())
    asked = {pin.name: pin for pin in pins}
    if (missing := _NO_PACKAGE.search(flat)) and missing["name"] in asked:
        return _no_package(asked[missing["name"]])
    for pattern in (_NO_VERSION, _NO_WHEEL):
        found = pattern.search(flat)
        if found and (pin := asked.get(canonicalize_name(found["name"]))):
            near = await _nearest(pin, target=target, index=index, tools=tools, run=run)
            return _no_version(pin, near) if pattern is _NO_VERSION else NoWheel.of(pin, target, near)
    explanation = shorten(_explanation(said), index)
    if "No solution found" in said:
        if _NO_WHEEL.search(flat) or "has no usable wheels" in flat:
            return NoWheel(f"These packages cannot be installed without building one from source:\n{explanation}")
        return PackagesFailed(f"These packages cannot be installed together:\n{explanation}")
    return PackagesFailed(f"The packages cannot be resolved:\n{explanation}")


class NoWheel(PackagesFailed):
    """A package has no wheel for the target: the one failure that building from source can mend."""

    @classmethod
    def of(cls, pin: Pin, target: Target, near: Sequence[str]) -> "NoWheel":
        """Say which package, and the two ways out."""
        where = f"Python {target.runtime} on linux {target.machine}"
        instead = f"Pin {' or '.join(near)}, which has one, or let" if near else "Let"
        detail = (
            f"{pin.text} has no wheel for {where}, and building from source is off. "
            f"{instead} the operator set allow_source_builds: it is then built inside a sandbox."
        )
        return cls(detail, problems=(Problem("packages", f"{pin.text} has no wheel", near[0] if near else None),))


def _no_package(pin: Pin) -> PackagesFailed:
    meant = close_name(pin.name, pin.language)
    hint = f" Did you mean {meant}?" if meant else " Check the name: it may differ from the name that is imported."
    problem = Problem("packages", f"there is no package {pin.name}", meant)
    return PackagesFailed(f"There is no package {pin.name} in the index.{hint}", problems=(problem,))


def _no_version(pin: Pin, near: Sequence[str]) -> PackagesFailed:
    nearest = f" The nearest for this runtime: {', '.join(near)}." if near else ""
    problem = Problem("packages", f"there is no {pin.text}", near[0] if near else None)
    return PackagesFailed(f"{pin.name} has no version {pin.version}.{nearest}", problems=(problem,))


def unanswered(said: str) -> bool:
    """Whether the index is to blame; a solution that does not exist is not, whatever its packages are called."""
    return bool(_DENIED.search(said)) or ("No solution found" not in said and bool(_NO_ANSWER.search(said)))


async def _nearest(pin: Pin, *, target: Target, index: IndexSettings, tools: Tools, run: Run) -> list[str]:
    """Return pins of the versions around one that does not exist, the older first."""
    below = await newest(f"{pin.name}<{pin.version}", target=target, index=index, tools=tools, run=run)
    above = await newest(f"{pin.name}>{pin.version}", target=target, index=index, tools=tools, run=run, lowest=True)
    return [Pin(pin.name, version, pin.extras).text for version in (below, above) if version]


def _explanation(said: str) -> str:
    lines = [line for line in said.splitlines() if not line.startswith(("warning:", "hint:", "error: No solution"))]
    return "\n".join(lines).replace("  cause: ", "")


def last_cause(said: str) -> str:
    """Return what uv gave as the reason behind the reason."""
    causes = [line.split(":", maxsplit=1)[1].strip() for line in said.splitlines() if line.startswith("  cause:")]
    return causes[-1] if causes else said
