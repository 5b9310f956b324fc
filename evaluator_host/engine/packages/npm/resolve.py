"""Resolves npm pins with npm. Never runs package scripts, and accepts packages only from the registry."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.packages.index import npm_workspace
from evaluator_host.engine.packages.lock import LockedPackage, LockTarget, Pin
from evaluator_host.engine.packages.tools import Resolver, no_package, no_version, shorten, unreachable
from evaluator_host.engine.system.processes import OUTPUT_BYTES, Finished
from evaluator_host.types.errors import HostError, IndexUnavailable, PackagesFailed
from evaluator_host.types.evaluator import Language

_VERSIONS: Final = Path(__file__).with_name("versions.cjs")
_BUNDLES: Final = Path(__file__).with_name("bundles.cjs")
_CPU: Final = {"x86_64": "x64", "aarch64": "arm64"}
NO_ANSWER: Final = re.compile(
    r"ENOTFOUND|ECONN\w+|ETIMEDOUT|EAI_AGAIN|E(?:HOST|NET)UNREACH|EPIPE|EIDLETIMEOUT|ENOTCACHED|ERR_(?:SOCKET|TLS|SSL)\w*"
    r"|\w*CERT\w*|UNABLE_TO_\w+|EPROTO|E401|E403|E407|E42\d|E5\d\d|FETCH_ERROR"
)
# maximum number of characters of an error to keep, because errors may quote long text from packages
_SAID_CHARS: Final = 20_000
_NEEDS: Final = ("dependencies", "optionalDependencies", "peerDependencies")
_TARGET: Final = re.compile(r"No matching version found for (?P<spec>@?[^@\s]+@\S+?)\.?$")
_OUTSIDE: Final = re.compile(r'Fetching packages of type "(?P<kind>\w+)" have been disabled')
_MISSING: Final = re.compile(r"'(?P<name>@?[^@'\s]+)(?:@[^']*)?' (?:could not be found|is not in)")


async def resolve_npm(
    pins: Sequence[Pin], resolver: Resolver
) -> tuple[tuple[LockedPackage, ...], str, tuple[str, ...]]:
    """Resolve npm pins; return packages, lock text and notes.

    Raises:
      PackagesFailed: no such package or version, conflicting peer dependencies, a wrong platform, or a package from
        outside the registry; the message comes from npm.
      IndexUnavailable: the registry does not answer.
    """
    async with npm_workspace(resolver.index) as workspace:
        (workspace.path / "package.json").write_text(manifest(pins), "utf-8")
        (workspace.path / _BUNDLES.name).write_text(_BUNDLES.read_text("utf-8"), "utf-8")
        node, npm = resolver.tools.npm_command
        flags = ("install", "--package-lock-only", "--lockfile-version=3", "--json", *platform_flags(resolver.target))
        finished = await resolver.attempt((node, "--require", f"./{_BUNDLES.name}", npm, *flags), workspace)
        if finished.code != 0:
            raise await _failure(finished, pins, resolver)
        lock = workspace.path / "package-lock.json"
        return await asyncio.to_thread(_read_lock, lock, {pin.name for pin in pins}, resolver.target)


def _read_lock(
    file: Path, requested: set[str], target: LockTarget
) -> tuple[tuple[LockedPackage, ...], str, tuple[str, ...]]:
    try:
        if file.stat().st_size > OUTPUT_BYTES:
            raise PackagesFailed("The packages have more dependencies than this host can store; pin fewer packages.")
        text = file.read_text("utf-8")
        packages, notes = _packages(json.loads(text), requested, target)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise PackagesFailed(
            f"npm's lock file cannot be read ({type(error).__name__}): a package's entry in the registry is broken. "
            "Pin another version of that package."
        ) from error
    return packages, text, notes


async def matching_versions(specs: Sequence[tuple[str, str]], resolver: Resolver) -> list[tuple[str, ...]]:
    """Return the versions that match each `(name, range or tag)`, oldest first.

    Raises:
      IndexUnavailable: the registry answers for none of the packages.
    """
    if not specs:
        return []
    async with npm_workspace(resolver.index) as workspace:
        queries = workspace.path / "queries.json"
        queries.write_text(json.dumps(specs), "utf-8")
        # a build sandbox can read the workspace, but not this host's own files
        script = workspace.path / _VERSIONS.name
        script.write_text(_VERSIONS.read_text("utf-8"), "utf-8")
        argv = (str(resolver.tools.node), str(script), str(resolver.tools.npm), str(queries))
        finished = await resolver.attempt(argv, workspace)
    answers = await asyncio.to_thread(_json, finished.stdout)
    if finished.code != 0 or not isinstance(answers, list) or len(answers) != len(specs):
        raise PackagesFailed(
            f"npm cannot list versions: {shorten(finished.stderr, resolver.index) or 'npm gave no reason'}"
        )
    silent = [answer for answer in answers if NO_ANSWER.fullmatch(answer.get("code", ""))]
    if len(silent) == len(answers):
        raise _no_answer(silent[0], resolver)
    return [tuple(answer.get("versions", ())) for answer in answers]


async def newest_in_ranges(pins: Sequence[str], ranges: Mapping[str, str], resolver: Resolver) -> list[str]:
    """Return pins in which each package of `ranges` has the newest version in its range.

    A package stays as it is if no version is in its range.

    Raises:
      IndexUnavailable: the registry answers for none of the packages.
    """
    names = {pin: pin[:1] + pin[1:].partition("@")[0] for pin in pins}
    asked = {pin: ranges[name] for pin, name in names.items() if name in ranges}
    found = await matching_versions([(names[pin], text) for pin, text in asked.items()], resolver)
    newest = {pin: f"{names[pin]}@{versions[-1]}" for pin, versions in zip(asked, found, strict=True) if versions}
    return [newest.get(pin, pin) for pin in pins]


def manifest(pins: Sequence[Pin]) -> str:
    """Return the `package.json` that `npm ci` needs together with npm's lock."""
    dependencies = {pin.name: pin.version for pin in sorted(pins)}
    return json.dumps({"name": "set", "version": "0.0.0", "private": True, "dependencies": dependencies}, indent=2)


def platform_flags(target: LockTarget) -> tuple[str, ...]:
    """Return npm's command-line flags for a target platform."""
    return "--os=linux", f"--cpu={_CPU.get(target.machine, target.machine)}", "--libc=glibc"


def _packages(
    lock: dict[str, Any], requested: set[str], target: LockTarget
) -> tuple[tuple[LockedPackage, ...], tuple[str, ...]]:
    found: set[LockedPackage] = set()
    notes: list[str] = []
    names = {path: _checked(path, entry) for path, entry in lock["packages"].items() if path}
    for path in sorted(_installed(lock["packages"], target)):
        entry, name = lock["packages"][path], names[path]
        if deprecated := entry.get("deprecated"):
            notes.append(f"{name}@{entry['version']} is deprecated: {str(deprecated)[:200]}")
        needs = tuple(sorted({**entry.get("dependencies", {}), **entry.get("optionalDependencies", {})}))
        hashes = tuple(entry["integrity"].split()) if "integrity" in entry else ()
        found.add(
            LockedPackage(name, entry["version"], path == f"node_modules/{name}" and name in requested, hashes, needs)
        )
    return tuple(sorted(found, key=lambda package: (package.name, package.version))), tuple(notes)


def _installed(entries: Mapping[str, dict[str, Any]], target: LockTarget) -> set[str]:
    """Return the paths of the lock's packages that npm installs on the target.

    Optional packages for other platforms are left out. So are their dependencies, although the lock does not mark these
    as optional.

    Raises:
      PackagesFailed: a required package does not run on the target.
    """
    reached: set[str] = set()
    waiting = [""]
    while waiting:
        path = waiting.pop()
        for name in {name for field in _NEEDS for name in entries[path].get(field, ())}:
            needed = _nearest(path, name, entries)
            if needed is None or needed in reached:
                continue
            if fits(entries[needed], target):
                reached.add(needed)
                waiting.append(needed)
            elif not entries[needed].get("optional"):
                version = entries[needed]["version"]
                raise PackagesFailed(
                    f"{name}@{version} does not run on linux {target.machine}. Pin another version or package."
                )
    return reached


def _nearest(path: str, name: str, entries: Mapping[str, dict[str, Any]]) -> str | None:
    """Return where Node finds a package for code at `path`: in `node_modules` there, or in the nearest folder above."""
    while True:
        found = f"{path}/node_modules/{name}".removeprefix("/")
        if found in entries:
            return found
        if not path:
            return None
        path = path.rpartition("node_modules/")[0].removesuffix("/")


def _checked(path: str, entry: dict[str, Any]) -> str:
    """Return the name of a package; refuse it if it does not come from the registry, or has no hash."""
    name = str(entry.get("name") or path.rpartition("node_modules/")[2])
    if entry.get("link") or "resolved" in entry:
        raise PackagesFailed(
            f"{name} comes from outside the registry (a URL, a git repository or a path). Pin another version or "
            "package."
        )
    if "integrity" not in entry and not entry.get("inBundle"):
        raise PackagesFailed(
            f"The registry has no integrity hash for {name}@{entry.get('version')}. Pin another version or package."
        )
    return name


def fits(entry: dict[str, Any], target: LockTarget) -> bool:
    """Return whether a package's lists `os`, `cpu` and `libc` allow the target; `!x` excludes x."""
    values = {"os": "linux", "cpu": _CPU.get(target.machine, target.machine), "libc": "glibc"}
    return all(_allows(entry.get(field), value) for field, value in values.items())


def _allows(listed: list[str] | str | None, value: str) -> bool:
    names = [listed] if isinstance(listed, str) else listed or []
    if f"!{value}" in names:
        return False
    wanted = [name for name in names if not name.startswith("!")]
    return not wanted or value in wanted or "any" in wanted


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _error(answer: Any, finished: Finished) -> dict[str, str]:
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return {"code": "", "summary": finished.stderr or "npm gave no reason", "detail": ""}
    return {key: str(error.get(key) or "")[:_SAID_CHARS] for key in ("code", "summary", "detail")}


def _no_answer(error: dict[str, str], resolver: Resolver) -> IndexUnavailable:
    return unreachable(error["summary"].rpartition("reason: ")[2] or error["code"], resolver.index)


async def _failure(finished: Finished, pins: Sequence[Pin], resolver: Resolver) -> HostError:
    error = _error(await asyncio.to_thread(_json, finished.stdout), finished)
    asked = {pin.text: pin for pin in pins}
    if NO_ANSWER.fullmatch(error["code"]):
        return _no_answer(error, resolver)
    if error["code"] == "E404":
        found = _MISSING.search(error["detail"])
        name = found["name"] if found else "one of the packages"
        check = "Check the name, and whether the registry's credentials give access to it."
        return no_package(name, Language.JAVASCRIPT, index="registry", check=check)
    found = _TARGET.search(error["summary"])
    if error["code"] == "ETARGET" and found and (pin := asked.get(found["spec"])):
        return await _no_version(pin, resolver)
    if error["code"] == "ERESOLVE":
        detail = error["detail"].split("Fix the upstream")[0]
        return PackagesFailed(f"These packages cannot be installed together:\n{shorten(detail, resolver.index)}")
    if (outside := from_outside(error["summary"])) is not None:
        return outside
    return PackagesFailed(f"The packages cannot be resolved: {shorten(error['summary'], resolver.index)}")


def from_outside(said: str) -> PackagesFailed | None:
    """Return the error if npm's output says that it refused a package from outside the registry; else None."""
    if (outside := _OUTSIDE.search(said)) is None:
        return None
    what = f"a package from outside the registry ({outside['kind']}), which is not allowed"
    return PackagesFailed(f"One of these packages depends on {what}: pin another version or another package.")


async def _no_version(pin: Pin, resolver: Resolver) -> PackagesFailed:
    around = [(pin.name, f"<{pin.version}"), (pin.name, f">{pin.version}")]
    below, above = await matching_versions(around, resolver)
    near = [f"{pin.name}@{version}" for version in (*below[-1:], *above[:1])]
    return no_version(pin, near, title="The nearest")
