"""Finds npm packages that lack their native addon.

An install script normally builds or downloads the addon, but this host does not run install scripts.
"""

from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from evaluator_host.engine.packages.tools import known_names
from evaluator_host.engine.system.tree import walk
from evaluator_host.types.json_values import decode_json

_MANIFEST_BYTES: Final = 1024 * 1024  # size limit, in bytes, of a package.json that is read; most have a few kilobytes
_SCRIPTS: Final = frozenset({"preinstall", "install", "postinstall"})


def manifest_of(package: Path) -> dict[str, object]:
    """Return the package.json of an installed npm package; {} if the file cannot be read."""
    with suppress(OSError, ValueError), (package / "package.json").open("rb") as file:
        text = file.read(_MANIFEST_BYTES + 1)
        found = decode_json(text) if len(text) <= _MANIFEST_BYTES else None
        return found if isinstance(found, dict) else {}
    return {}


def lacks_addon(root: Path, name: str) -> bool:
    """Return whether an npm package of a package set needs a native addon that is not installed."""
    package = root / "node_modules" / name
    if name in known_names()["npm_without_addon"] or not (package / "binding.gyp").is_file():
        return False
    optional = manifest_of(package).get("optionalDependencies")
    names = [str(other) for other in optional] if isinstance(optional, dict) else []
    inside = [
        other for other in names if ".." not in other.split("/") and not other.startswith("/") and "\0" not in other
    ]
    others = [root / "node_modules" / other for other in inside if other.strip("./")]
    return not any(_has_addon(folder) for folder in (package, *others))


def has_install_script(root: Path, name: str) -> bool:
    """Return whether an npm package of a package set has a script that `npm install` runs."""
    scripts = manifest_of(root / "node_modules" / name).get("scripts")
    return isinstance(scripts, dict) and not _SCRIPTS.isdisjoint(scripts)


def way_out(name: str) -> str:
    """Return advice on a package whose native addon is missing."""
    instead = known_names()["npm_instead_of_addon"].get(name)
    return (
        f"use {instead}, which works here"
        if instead
        else "pin a version that includes its compiled addon, or another package"
    )


def _has_addon(folder: Path) -> bool:
    with closing(walk(folder, strict=False)) as entries:
        return any(entry.is_file and entry.path.endswith(".node") for entry in entries)
