"""Resolves imports whose names a project's own configuration maps to files, such as `@/lib/text` in TypeScript.

The configuration is `paths` and `baseUrl` in the nearest tsconfig.json or jsconfig.json above a file, and `imports` in
the nearest package.json.
"""

import json
import os.path
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_CONFIGS: Final = ("tsconfig.json", "jsconfig.json")
_PACKAGE: Final = "package.json"
_KEPT: Final = ("emitDecoratorMetadata", "experimentalDecorators", "useDefineForClassFields")
"""Options that decide how the compiler reads decorators and fields of classes."""
_MOST_STEPS: Final = 10
_MOST_BYTES: Final = 200_000
_CONDITIONS: Final = ("import", "node", "default", "require")
# What JSON does not allow: comments, and commas before a closing bracket. The expression also matches strings, so
# that their content stays. Strings and comments without an end match too: the search for thousands of missing ends
# would take minutes.
_EXTRAS: Final = re.compile(r'("(?:[^"\\\n]|\\.)*+"?)|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[\]}])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Aliases:
    """The mapping that applies to the scripts in a folder.

    Attributes:
      config: Path of the configuration for the compiler.
      options: Options of the compiler that are kept.
      paths: Absolute patterns of files, by the pattern of a specifier; each pattern has at most one `*`.
      base: Folder from which other specifiers may be resolved, or None.
    """

    config: Path
    options: dict[str, Any] = field(default_factory=dict)
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    base: Path | None = None

    def candidates(self, specifier: str) -> Iterator[Path]:
        """Yield the paths that a specifier may mean, without suffixes, in the order in which compilers try them."""
        fitting = [(pattern, rest) for pattern in self.paths if (rest := _rest(pattern, specifier)) is not None]
        if fitting:
            pattern, rest = max(fitting, key=lambda one: ("*" not in one[0], len(one[0].partition("*")[0])))
            yield from (Path(os.path.normpath(one.replace("*", rest, 1))) for one in self.paths[pattern])
        elif self.base is not None and not specifier.startswith(("node:", "@")):
            yield Path(os.path.normpath(self.base / specifier))

    def text(self) -> str:
        """Return a configuration that contains only this mapping; without `extends`, it needs no other file."""
        folder = self.config.parent
        paths = {pattern: [_from(folder, one) for one in found] for pattern, found in self.paths.items()}
        base = {} if self.base is None else {"baseUrl": _from(folder, str(self.base))}
        return json.dumps({"compilerOptions": {**self.options, **base, **({"paths": paths} if paths else {})}})


def aliases_for(folder: Path, holds: Callable[[Path], bool]) -> Aliases | None:
    """Return the mapping for the scripts in a folder, from folders that `holds` accepts; None if there is none."""
    above = [one for one in (folder, *folder.parents) if holds(one)]
    config = next((path for one in above for name in _CONFIGS if (path := one / name).is_file()), None)
    package = next((path for one in above if (path := one / _PACKAGE).is_file()), None)
    options, paths, base = _options(config, holds)
    imports = {} if package is None else _imports(package)
    if not paths and not imports and base is None:
        return None
    place = config or (package.parent / _CONFIGS[0] if package is not None else folder / _CONFIGS[0])
    return Aliases(place, options, {**imports, **paths}, base)


def _options(
    config: Path | None, holds: Callable[[Path], bool]
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]], Path | None]:
    """Return kept options, `paths` and `baseUrl` of a configuration and of those that it extends."""
    options: dict[str, Any] = {}
    paths: dict[str, tuple[str, ...]] | None = None
    base: Path | None = None
    for _ in range(_MOST_STEPS):
        whole = {} if config is None else _read(config)
        own = whole.get("compilerOptions")
        own = own if isinstance(own, dict) else {}
        folder = config.parent if config is not None else Path()
        options = {**{key: own[key] for key in _KEPT if isinstance(own.get(key), bool)}, **options}
        url = own.get("baseUrl")
        if base is None and isinstance(url, str):
            base = Path(os.path.normpath(folder / url))
        if paths is None and isinstance(own.get("paths"), dict):
            start = Path(os.path.normpath(folder / url)) if isinstance(url, str) else base or folder
            paths = {str(key): _texts(value, start) for key, value in own["paths"].items()}
        extended = whole.get("extends")
        extended = extended[-1] if isinstance(extended, list) and extended else extended
        if not isinstance(extended, str) or not extended.startswith("."):
            break
        wanted = Path(os.path.normpath(folder / extended))
        config = next((one for one in (wanted, Path(f"{wanted}.json")) if one.is_file() and holds(one.parent)), None)
        if config is None:
            break
    return options, {key: value for key, value in (paths or {}).items() if value}, base


def _imports(package: Path) -> dict[str, tuple[str, ...]]:
    imports = _read(package).get("imports")
    if not isinstance(imports, dict):
        return {}
    found = {key: _texts([_target(value)], package.parent) for key, value in imports.items() if key.startswith("#")}
    return {key: value for key, value in found.items() if value}


def _target(value: Any) -> Any:
    """Return the path in an entry of `imports`, which may be an object with a path for each condition."""
    for _ in range(_MOST_STEPS):
        if not isinstance(value, dict):
            break
        value = next((value[one] for one in _CONDITIONS if one in value), None)
    return value


def _texts(value: Any, start: Path) -> tuple[str, ...]:
    given = value if isinstance(value, list) else []
    return tuple(os.path.normpath(start / one) for one in given if isinstance(one, str) and not one.startswith("/"))


def _rest(pattern: str, specifier: str) -> str | None:
    """Return the part of a specifier that the `*` of a pattern stands for; None if it does not fit."""
    first, star, last = pattern.partition("*")
    if not star:
        return "" if pattern == specifier else None
    fits = specifier.startswith(first) and specifier.endswith(last) and len(specifier) >= len(first) + len(last)
    return specifier[len(first) : len(specifier) - len(last)] if fits else None


def _from(folder: Path, path: str) -> str:
    shown = os.path.relpath(path, folder).replace(os.sep, "/")
    return shown if shown.startswith(".") else f"./{shown}"


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a configuration, in which comments and trailing commas are allowed; {} if it is invalid."""
    try:
        text = path.read_bytes()[:_MOST_BYTES].decode("utf-8-sig", "replace")
        found = json.loads(_EXTRAS.sub(lambda one: one[1] or "", _EXTRAS.sub(lambda one: one[1] or "", text)))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
