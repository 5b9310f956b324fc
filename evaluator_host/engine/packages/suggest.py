"""Finds the exact pin that was probably meant by a refused pin or a missing import; queries the index for versions.

A module's name is not always its package's name (`cv2` is in opencv-python), and an index does not list modules. A
table has the packages of modules that people often import. For any other module, the package is assumed to have the
same name.
"""

import asyncio
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import anyio.to_thread
from packaging.utils import canonicalize_name

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import LockTarget, Pin, RawPin
from evaluator_host.engine.packages.npm import syntax as npm_syntax
from evaluator_host.engine.packages.npm.resolve import matching_versions
from evaluator_host.engine.packages.pin_parser import spelled
from evaluator_host.engine.packages.pip import syntax as pip_syntax
from evaluator_host.engine.packages.pip.resolve import newest_version
from evaluator_host.engine.packages.tools import (
    Resolver,
    close_name,
    installed_tools,
    known_names,
    known_packages,
    package_of_module,
)
from evaluator_host.engine.system import processes
from evaluator_host.engine.system.processes import Run
from evaluator_host.types.errors import HostError, Problem
from evaluator_host.types.evaluator import Language

# longest time that a refusal waits for a better hint, in seconds; on an idle machine, a hint takes 1 s
TIMEOUT_S: Final = 10.0
_MAX_LOOKUPS: Final = 20
_FIELD: Final = re.compile(r"packages\[(\d+)\]")
_FALLBACKS: Final = re.compile(r"^except\b[^\n]*+\n[ \t]+((?:from|import) [^\n#]*)", re.MULTILINE)
"""Matches an import that a program tries at the top level after another import failed."""
_IMPORTS: Final = re.compile(r"\bimport\b")
_DOTTED: Final = re.compile(r"[A-Za-z_][\w.]*")
_SPECIFIER: Final = re.compile(r"\b(?:from|import|require)\s*+(?:\(\s*+)?[\"']([^\"'\s]{1,200})[\"']")
_MOST_NAMES: Final = 100  # maximum number of names to read from one line
_VERSION: Final = re.compile(r"(==)?\d[\w.!+-]*")

K = TypeVar("K")
_NPM_PACKAGE: Final = re.compile(
    r"(?:npm:/?)?(@[a-z0-9~-][\w.~-]*/[a-z0-9~-][\w.~-]*|[a-z0-9~-][\w.~-]*)(@[\w.+-]+)?(?:/.*)?", re.IGNORECASE
)


async def suggest(
    problems: Sequence[Problem],
    raw: Sequence[RawPin],
    language: Language,
    *,
    target: LockTarget,
    index: IndexSettings,
    timeout_s: float = TIMEOUT_S,
    run: Run = processes.run,
) -> tuple[Problem, ...]:
    """Return the problems of an `InvalidPin` with better hints; if the index does not answer, the hints stay the same.

    The field of each problem is `packages[i]`; i is an index into `raw`. `timeout_s` is the time limit for all problems
    together; `run` starts the processes that query the index.
    """
    texts = {}
    for place, problem in enumerate(problems[:_MAX_LOOKUPS]):
        if (text := _refused(problem, raw, language)) is not None:
            texts[place] = text, problem.hint
    search = _PinSearch(language, Resolver(replace(index, timeout_s=timeout_s), target, run=run))
    hints: dict[int, str] = {}
    try:
        async with asyncio.timeout(timeout_s):
            await search.add_hints(texts, hints)
    except (HostError, TimeoutError):
        pass  # if a better hint does not arrive in time, the problem keeps its first hint
    return tuple(replace(problem, hint=hints.get(place, problem.hint)) for place, problem in enumerate(problems))


class _PinSearch:
    """Queries the index of a language, with one process for each Python package, or one for all npm packages."""

    def __init__(self, language: Language, resolver: Resolver) -> None:
        self._language = language
        self._resolver = resolver

    async def add_hints(self, refused: Mapping[int, tuple[str, str | None]], into: dict[int, str]) -> None:
        """Add a hint to `into` for each refused string: the newest matching version, or a package of a similar name."""
        wanted = await self._ranges([text for text, _ in refused.values()])
        asked = {}
        for (place, (_, hint)), one in zip(refused.items(), wanted, strict=True):
            # otherwise the user only misspelt an exact version, and the hint already contains the right spelling
            if one is not None and not (hint and _VERSION.fullmatch(one[1])):
                asked[place] = one
        await self.add_newest(asked, into)
        meant = await anyio.to_thread.run_sync(self._meant, asked)
        await self.add_newest({place: (name, "") for place, name in meant.items() if name and place not in into}, into)

    def _meant(self, asked: Mapping[int, tuple[str, str]]) -> dict[int, str | None]:
        return {place: close_name(name.partition("[")[0], self._language) for place, (name, _) in asked.items()}

    async def add_newest(self, asked: Mapping[K, tuple[str, str]], into: dict[K, str]) -> None:
        """Add to `into` the newest pin that matches each `(name, range)`, if there is one."""
        if self._language is Language.PYTHON:
            async with asyncio.TaskGroup() as group:
                for key, (name, wanted) in asked.items():
                    group.create_task(self._add_newest_wheel(key, name + wanted, name, into))
            return
        specs = [(name, wanted or "latest") for name, wanted in asked.values()]
        found = await matching_versions(specs, self._resolver)
        for (key, (name, _)), versions in zip(asked.items(), found, strict=True):
            if versions:
                into[key] = f"{name}@{versions[-1]}"

    async def _add_newest_wheel(self, key: K, requirement: str, name: str, into: dict[K, str]) -> None:
        try:
            version = await newest_version(requirement, self._resolver)
        except HostError:
            return
        pinned = pip_syntax.read(f"{name}=={version}") if version else None
        if isinstance(pinned, Pin):
            into[key] = pinned.text

    async def _ranges(self, texts: Sequence[str]) -> list[tuple[str, str] | None]:
        if self._language is not Language.PYTHON:
            return await anyio.to_thread.run_sync(npm_syntax.wanted, texts)
        return [_range(text) for text in texts]


def _refused(problem: Problem, raw: Sequence[RawPin], language: Language) -> str | None:
    field = _FIELD.fullmatch(problem.field)
    if field is None or int(field[1]) >= len(raw):
        return None
    text = spelled(raw[int(field[1])], language)
    return text if isinstance(text, str) else None


def _range(text: str) -> tuple[str, str] | None:
    requirement = pip_syntax.wanted(text)
    if requirement is None:
        return None
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return requirement.name + extras, str(requirement.specifier)


def pin_for(module: str, language: Language) -> str | None:
    """Return the name of the package that probably contains a module.

    The name has no version, unless the import names one.

    Args:
      module: As imported: `cv2`, `google.cloud.storage`, `lodash/fp`, `@scope/name/sub`, `npm:lodash@4.17.21`.
      language: Language of the evaluator.

    Returns:
      The package's name; None for modules of the runtime itself, for relative imports, and for names that usually mean
      an author's own file.
    """
    return _distribution(module) if language is Language.PYTHON else _npm_package(module)


def range_of(module: str) -> str:
    """Return the range of package versions that have a Python module, such as `<82`; empty if all versions have it."""
    return str(known_names()["range_of_module"].get(module.partition(".")[0], ""))


def undeclared_by(module: str) -> tuple[str, ...]:
    """Return the modules that a Python module imports although its package does not declare them as dependencies."""
    return tuple(known_names()["undeclared_modules"].get(module.partition(".")[0], ()))


def is_known(package: str, language: Language) -> bool:
    """Return whether a package is well known, so that the host may suggest it for an import.

    Other packages are not suggested: anybody may publish `rewards`, and people who pin it run a stranger's code.
    """
    return package in known_packages(language) and package not in known_names()["own_modules"]


def module_of(package: str, language: Language) -> str | None:
    """Return the module that a well-known package provides, or None for any other package."""
    if language is not Language.PYTHON:
        return package if is_known(package, language) else None
    name = canonicalize_name(package)
    if not is_known(name, language):
        return None
    named = [module for module, one in package_of_module().items() if canonicalize_name(one) == name]
    return min(named, key=len, default=name.replace("-", "_"))


def is_plain(module: str) -> bool:
    """Return whether authors give a module's name to their own files as often as they import the package."""
    return module.partition(".")[0].lower() in known_names()["plain_words"]


def known_modules(language: Language, texts: Iterable[str]) -> dict[str, str]:
    """Return the modules in the code's import lines, each with its well-known package.

    The package is "" for a module that no well-known package has; such a module is probably a file of the author.
    """
    if language is not Language.PYTHON:
        return _known_of_npm(language, texts)
    texts = tuple(texts)
    lines = [
        line.partition("#")[0]
        for text in texts
        if "import" in text
        for line in text.splitlines()
        if _IMPORTS.search(line)
    ]
    named = (_DOTTED.findall(line)[:_MOST_NAMES] for line in lines)
    last = [line for text in texts for line in _FALLBACKS.findall(text)]
    found = {one: "" for line in (*lines, *last) for one in _imported_at_top(line)}
    for name in sorted({one for names in named for one in (*names, *_in_namespace(names))}):
        top = name if _is_namespace(name) else name.partition(".")[0]
        package = pin_for(top, language)
        if package is not None and is_known(package, language):
            found[top] = package
    return found


def imported_packages(language: Language, texts: Iterable[str]) -> set[str]:
    """Return the names of all packages that the code's import lines may mean, whether they are well known or not."""
    if language is not Language.PYTHON:
        named = (pin_for(one, language) or "" for text in texts for one in _SPECIFIER.findall(text))
        return {without_version(name) for name in named if name}
    return {canonicalize_name(package or module) for module, package in known_modules(language, texts).items()}


def _imported_at_top(line: str) -> list[str]:
    """Return the top-level names of the modules that a line of code imports."""
    if line.startswith("from "):
        names = line.split(maxsplit=2)[1:2]
    else:
        names = line.removeprefix("import ").split(",")[:_MOST_NAMES] if line.startswith("import ") else []
    tops = [name.split()[0].partition(".")[0] for name in names if name.strip()]
    own = [one for one in tops if one.isidentifier() and one not in sys.stdlib_module_names and one != "__main__"]
    return [one for one in own if not _is_namespace(one)]


def without_version(pin: str) -> str:
    """Return the npm package in a pin such as `zod@4.1.12` or `@scope/name@1.2.3`; a name alone stays as it is."""
    return pin[:1] + pin[1:].partition("@")[0]


def _known_of_npm(language: Language, texts: Iterable[str]) -> dict[str, str]:
    found = {one for text in texts for one in _SPECIFIER.findall(text)}
    named = {(pin_for(one, language) or "") for one in found}
    names = {without_version(name) for name in named}
    return {name: name if is_known(name, language) else "" for name in sorted(names - {""})}


def _in_namespace(names: list[str]) -> list[str]:
    """Return the modules in an import from a namespace package: `google.genai` for `from google import genai`."""
    below = len(names) > 1 and names[0] == "from" and _is_namespace(names[1])
    return [f"{names[1]}.{one}" for one in names[3:]] if below else []


def _is_namespace(module: str) -> bool:
    return module.partition(".")[0] in known_names()["namespaces"]


def _distribution(module: str) -> str | None:
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    if parts[0] in sys.stdlib_module_names or parts[0] == "__main__":
        return None
    table = package_of_module()
    for length in range(len(parts), 0, -1):
        if found := table.get(".".join(parts[:length])):
            return canonicalize_name(found)
    if parts[0].lower() in known_names()["own_modules"] or parts[0].startswith("_") or not parts[0].isascii():
        return None
    return canonicalize_name(module if _is_namespace(module) else parts[0])


def _npm_package(specifier: str) -> str | None:
    found = _NPM_PACKAGE.fullmatch(specifier)
    if found is None or found[1] == "~" or found[1] in installed_tools().node_builtins:
        return None
    return found[1] + (found[2] or "")
