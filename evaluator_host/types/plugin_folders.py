"""Finds plugins by name, without importing them: the host's own plugins in folders, and all others by entry points.

A plugin is a package that has `dialect.py` (`DIALECT`, a way to write evaluators), `plugin.py` (`PLUGIN`, everything
else that it brings), or both.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

GROUP: Final = "evaluator_host.plugins"
OWN_CONTRACTS: Final = ("evaluate", "evaluate-v1", "main", "function", "script", "judge")

_HOST: Final = Path(__file__).parents[1]
IS_CLIENT: Final = not (_HOST / "vendors").is_dir()
"""Whether only the client is installed. The client has no plugins, even if the hosts that it calls have some."""

_CONTRACTS: Final = "evaluator_host.engine.contracts"
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class PluginFolder:
    """A package that brings a dialect or other parts of a host.

    Attributes:
      name: The plugin's name in requests and on the command line, and the name of its contract: `acme-scores`.
      package: Name by which to import the plugin.
      path: The plugin's folder.
    """

    name: str
    package: str
    path: Path

    @property
    def is_own(self) -> bool:
        """Return whether the plugin is part of the host, not of another package."""
        return self.path.is_relative_to(_HOST)

    def has(self, module: str) -> bool:
        """Return whether the package contains a module of this name; nothing is imported."""
        return (self.path / f"{module}.py").is_file()


@cache
def plugin_folders() -> Mapping[str, PluginFolder]:
    """Return all plugins, keyed by name: the platform's resources, the vendors, then the plugins of other packages.

    Raises:
      ImportError: an installed package brings a plugin whose name is taken or not valid.
    """
    resources = (one for one in own_folders("platform") if one.has("plugin"))
    found = {one.name: one for one in (*resources, *own_folders("vendors"))}
    for name, package in sorted(_entry_points(sys.path)):
        known = found.get(name)
        if known is not None and known.package == package:
            continue
        if known is not None or name in ("auto", *OWN_CONTRACTS) or not _NAME.fullmatch(name):
            why = "is taken" if _NAME.fullmatch(name) else "is not a lower-case name such as acme-scores"
            raise ImportError(
                f"the name of the plugin {name!r} of the package {package} {why}: "
                f"uninstall that package, or give its entry point in {GROUP} another name"
            )
        found[name] = PluginFolder(name, package, _folder_of(package))
    return found


def contract_folder(name: str) -> PluginFolder:
    """Return the folder of the dialect that has this contract: a dialect of the host or of a plugin."""
    if name in OWN_CONTRACTS:
        module = name.replace("-", "_")
        return PluginFolder(name, f"{_CONTRACTS}.{module}", _HOST / "engine" / "contracts" / module)
    return plugin_folders()[name]


def contracts_of_plugins() -> Iterator[str]:
    """Yield the names of the contracts that plugins bring."""
    return iter(()) if IS_CLIENT else (name for name, one in plugin_folders().items() if one.has("dialect"))


def own_folders(quarter: str) -> Iterator[PluginFolder]:
    """Yield the packages in one part of the host, such as `platform`, in the order of their names."""
    folder = _HOST / quarter
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (path / "__init__.py").is_file():
            yield PluginFolder(path.name.replace("_", "-"), f"evaluator_host.{quarter}.{path.name}", path)


def _folder_of(package: str) -> Path:
    from importlib.util import find_spec  # noqa: PLC0415 - few hosts have plugins of others

    spec = find_spec(package)
    places = None if spec is None else spec.submodule_search_locations
    if not places:
        raise ImportError(f"the plugin {package!r} in the entry points {GROUP} is not a package that can be imported")
    return Path(next(iter(places)))


def _entry_points(folders: Iterable[str]) -> set[tuple[str, str]]:
    """Return name and package of each plugin entry point that a package installed in these folders declares.

    `importlib.metadata` would take twenty times as long.
    """
    found: set[tuple[str, str]] = set()
    for folder in folders:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - faster, and done at each start
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                found.update(_read(f"{folder or '.'}/{name}/entry_points.txt"))
    return found


def _read(file: str) -> Iterator[tuple[str, str]]:
    try:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - as above
            text = opened.read()
    except (OSError, ValueError):
        return
    section = text.partition(f"[{GROUP}]")[2].partition("\n[")[0]
    for line in section.splitlines():
        name, mark, package = line.partition("=")
        if mark and not line.lstrip().startswith(("#", ";")):
            yield name.strip(), package.strip()
