"""Reads the exact versions that a project's own files pin: lock files, package.json and requirements.txt."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final

from packaging.utils import canonicalize_name

from evaluator_host.engine.packages.suggest import imported_packages
from evaluator_host.types.evaluator import Language

_VERSION: Final = re.compile(r"\d+(?:\.\d+){1,3}(?:[-+.a-zA-Z][\w.+-]*)?")
_REQUIREMENT: Final = re.compile(r"^([A-Za-z0-9][\w.-]{0,100})(?:\[[^\]\n]{0,200}\])?==([\w.!+-]{1,100})", re.MULTILINE)
# matches the start of a package in uv.lock, poetry.lock and pylock.toml; a TOML parser would take too long for hostile
# files
_LOCKED: Final = re.compile(
    r'''^\[\[packages?\]\]\r?\nname = "([^"\\\n]{1,100})"\r?\nversion = "([^"\\\n]{1,100})"''', re.MULTILINE
)
_PNPM: Final = re.compile(
    r"""^ {2,20}(?! )['"]?(@?[^@\s:'"]{1,100})['"]?:\r?\n"""
    r""" {4,20}specifier: [^\n]{1,200}\n {4,20}version: ([^\s(]{1,100})""",
    re.MULTILINE,
)
_YARN: Final = re.compile(r"""^"?(@?[^@\s"]{1,100})@([^\n]{1,2000}):\r?\n  version:? "?([^\s"]{1,100})""", re.MULTILINE)
_BUN: Final = re.compile(r'''^ {2,8}"(@?[^@\s"]{1,100})": \["\1@([^\s"]{1,100})"''', re.MULTILINE)
# matches a range of versions in the entry of a lock file, but not another name or an address
_FROM_INDEX: Final = re.compile(r"(?:npm:)?[^@:/]{1,100}")
# matches a range of versions in package.json (`^1.2.0`, `>=1 <3`, `1.x || 2.x`), not a tag, address or package's name
_ONE_BOUND: Final = r"(?:(?:[\^~]|[<>]=?|=) ?)?v?\d[\w.+*-]{0,40}"
# matches the separator of two bounds; without one, a long number could be split into bounds in billions of ways
_BETWEEN: Final = r"(?: {0,3}\|\| {0,3}| {1,3}- {1,3}| {1,3}|(?=[\^~<>=]))"
_RANGE: Final = re.compile(rf"{_ONE_BOUND}(?:{_BETWEEN}{_ONE_BOUND}){{0,9}}")
_MOST: Final = 5_000  # maximum number of packages to read from one file
# number of projects whose pins are cached, because each row with a missing import needs the pins again
_CACHED: Final = 16
_AFTER_NAME: Final = re.compile(r"[@=\[<>~! ]")
_OF_NPM: Final = "node_modules/"
_PACKAGE_JSON: Final = "package.json"

Versions = Iterator[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class DeclaredPin:
    """The exact pin of a package in a file of the project."""

    pin: str
    path: str


def declared_pins(files: Mapping[str, str], language: Language) -> dict[str, DeclaredPin]:
    """Return the exact pins in a project's files, by the name of the package.

    If several files pin a package, lock files count before other files.

    A package that one file pins to several versions, such as one for each version of Python, is left out.

    Args:
      files: Contents of files by path.
      language: Language whose files are read.
    """
    those = _declaring(files, language)
    return _declared_pins(tuple((path, files[path]) for path in those), language) if those else {}


def _declaring(files: Iterable[str], language: Language) -> list[str]:
    """Return the paths of the files that may pin versions, in the order in which they count."""
    names = declared_names(language)
    those = [path for path in files if path.rpartition("/")[2] in names]
    return sorted(those, key=lambda path: (names.index(path.rpartition("/")[2]), path.count("/")))


@lru_cache(_CACHED)
def _declared_pins(files: tuple[tuple[str, str], ...], language: Language) -> dict[str, DeclaredPin]:
    """Return the pins in files; the most important files must come first. Callers must not change the result."""
    is_python = language is Language.PYTHON
    found: dict[str, DeclaredPin] = {}
    for path, text in files:
        versions: dict[str, str | None] = {}
        read = (_PYTHON if is_python else _NPM)[path.rpartition("/")[2]]
        for package, version in _versions(read, text):
            key = canonicalize_name(package) if is_python else package
            versions[key] = version if versions.get(key, version) == version else None
        for key, one in versions.items():
            if one is not None:
                found.setdefault(key, DeclaredPin(f"{key}{'==' if is_python else '@'}{one}", path))
    return found


def declared_ranges(files: Mapping[str, str], language: Language) -> dict[str, str]:
    """Return the ranges of versions in a project's package.json files, by the name of the package.

    If several files name a package, the file nearest to the root counts. Exact versions are left out, and so is
    everything for Python.
    """
    texts: dict[str, str] = {}
    for path in _declaring(files, language):
        if path.rpartition("/")[2] == _PACKAGE_JSON:
            texts = _wanted_versions(files[path]) | texts
    return {name: text for name, text in texts.items() if _RANGE.fullmatch(text) and not _VERSION.fullmatch(text)}


def _wanted_versions(package_json: str) -> dict[str, str]:
    try:
        declared = list(islice(_package_json(package_json), _MOST))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return {}
    return {name: one.strip() for name, one in reversed(declared) if isinstance(name, str) and isinstance(one, str)}


def declared_imports(files: Mapping[str, str], texts: Iterable[str], language: Language) -> list[DeclaredPin]:
    """Return the pins that a project's files have for the packages that code imports, sorted by pin.

    `texts` are the pieces of code.
    """
    found = declared_pins(files, language)
    return sorted((found[one] for one in imported_packages(language, texts) if one in found), key=lambda one: one.pin)


def excerpt(pins: Iterable[DeclaredPin], ranges: Mapping[str, str]) -> dict[str, str]:
    """Return short files from which `declared_pins` reads these pins, and `declared_ranges` these ranges.

    The pins are at the paths where they were found, and the ranges in package.json.
    """
    texts: dict[str, str] = {}
    objects: dict[str, dict[str, Any]] = {_PACKAGE_JSON: dict(ranges)} if ranges else {}
    for one in pins:
        name = name_of_pin(one.pin)
        version = one.pin[len(name) :].lstrip("=@")
        file = one.path.rpartition("/")[2]
        if (line := _LINES.get(file)) is not None:
            texts[one.path] = texts.get(one.path, "") + line.format(name=name, version=version)
        else:
            value = version if file == _PACKAGE_JSON else {"version": version}
            objects.setdefault(one.path, {})[name] = value
    return texts | {path: json.dumps({"dependencies": found}) for path, found in objects.items()}


def declared_names(language: Language) -> tuple[str, ...]:
    """Return the names of the files that may pin versions, in the order in which they count."""
    return tuple(_PYTHON if language is Language.PYTHON else _NPM)


def name_of_pin(pin: str) -> str:
    """Return the name of the package in a pin such as `numpy==2.1.0` or `@scope/name@1.2.3`."""
    return (pin[:1] + _AFTER_NAME.split(pin[1:])[0]).lower()


def _versions(read: Callable[[str], Versions], text: str) -> Versions:
    """Yield the packages and exact versions that `read` finds in a file; stop at its first error."""
    try:
        for name, version in islice(read(text), _MOST):
            if isinstance(name, str) and isinstance(version, str) and _VERSION.fullmatch(version):
                yield name, version
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return


def _package_lock(text: str) -> Versions:
    content = json.loads(text)
    for path, one in (content.get("packages") or {}).items():
        if path.startswith(_OF_NPM) and _OF_NPM not in path.removeprefix(_OF_NPM):
            yield path.removeprefix(_OF_NPM), one.get("version")
    for name, one in (content.get("dependencies") or {}).items():
        yield name, one.get("version")


def _yarn_lock(text: str) -> Versions:
    for found in _YARN.finditer(text):
        wanted = found[2].strip('"').split(", ")[0].strip('"')
        if _FROM_INDEX.fullmatch(wanted):
            yield found[1], found[3]


def _package_json(text: str) -> Versions:
    content = json.loads(text)
    for group in ("dependencies", "devDependencies", "peerDependencies"):
        yield from (content.get(group) or {}).items()


def _matches(pattern: re.Pattern[str], text: str) -> Versions:
    """Yield the first two groups of each match: a package and its version."""
    for found in pattern.finditer(text):
        yield found[1], found[2]


_NPM: Final[dict[str, Callable[[str], Versions]]] = {
    "package-lock.json": _package_lock,
    "npm-shrinkwrap.json": _package_lock,
    "pnpm-lock.yaml": partial(_matches, _PNPM),
    "yarn.lock": _yarn_lock,
    "bun.lock": partial(_matches, _BUN),
    _PACKAGE_JSON: _package_json,
}
_PYTHON: Final[dict[str, Callable[[str], Versions]]] = {
    "uv.lock": partial(_matches, _LOCKED),
    "poetry.lock": partial(_matches, _LOCKED),
    "pylock.toml": partial(_matches, _LOCKED),
    "requirements.txt": partial(_matches, _REQUIREMENT),
}
# the text that pins one package in the excerpt of each file; excerpts of all other files are JSON
_LINES: Final = {
    "pnpm-lock.yaml": "      {name}:\n        specifier: {version}\n        version: {version}\n",
    "yarn.lock": '"{name}@{version}":\n  version "{version}"\n',
    "bun.lock": '    "{name}": ["{name}@{version}"]\n',
    "uv.lock": '[[package]]\nname = "{name}"\nversion = "{version}"\n',
    "poetry.lock": '[[package]]\nname = "{name}"\nversion = "{version}"\n',
    "pylock.toml": '[[packages]]\nname = "{name}"\nversion = "{version}"\n',
    "requirements.txt": "{name}=={version}\n",
}
