"""Imports modules that are packed with an evaluator, in comments at the end of its code.

    # /// module models models.py
    #|class Answer:
    #|    text = ""

Imports use the name, tracebacks show the path, and each `#|` is followed by one line of the module. As comments they
change no line number of the evaluator. A module whose path equals its name lay in the project's root: it comes before
installed packages, as in a process started there. Other modules, and folders without `__init__.py`, come after them.
"""

from __future__ import annotations

import builtins as _builtins
import sys
from _frozen_importlib import ModuleSpec  # type: ignore[import-not-found]
from _frozen_importlib_external import PathFinder  # type: ignore[import-not-found]

from evaluator_runner import tracebacks
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

MARK = "# /// module "
_LINE = "#|"
_PACKAGE = "/__init__.py"


class _Module:
    """The text of a module, and its loader."""

    def __init__(self, name: str, path: str, lines: list[str]) -> None:
        self.name = name
        self.path = path
        self.lines = lines
        self.is_package = path.endswith(_PACKAGE)
        self.is_of_root = path in {name.replace(".", "/") + end for end in (".py", _PACKAGE)}

    def create_module(self, _spec: Any) -> None:
        """Return None, so that the interpreter creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the text as the module."""
        code = compile(self.get_source(), self.path, "exec", dont_inherit=True)
        vars(module)["__builtins__"] = vars(_builtins)  # not the runner's own copy
        exec(code, vars(module))  # noqa: S102

    def get_source(self, _name: str = "") -> str:
        """Return the source, for `linecache` and `inspect`."""
        return "\n".join(self.lines)


class _Finder:
    """Finds packed modules by their full names, and the folders in `folders`, which have no `__init__.py`."""

    def __init__(self, modules: dict[str, _Module], folders: dict[str, str]) -> None:
        self._modules = modules
        self._folders = folders

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """Return the spec of a module, as `sys.meta_path` requires; None for a module that is not packed here."""
        module = self._modules.get(name)
        if module is None:
            return self._folder(name) if name in self._folders else None
        spec = ModuleSpec(name, module, origin=module.path, is_package=module.is_package)
        spec.has_location = True
        if module.is_package:
            spec.submodule_search_locations = [module.path.removesuffix(_PACKAGE)]
        return spec

    def _folder(self, name: str) -> Any:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [self._folders[name]]
        return spec


def install(code: str) -> None:
    """Make the packed modules of an evaluator importable in this process."""
    if MARK not in code:
        return
    found = _read(code)
    folders = _folders(found)
    first = {name: one for name, one in found.items() if one.is_of_root and name.rpartition(".")[0] not in folders}
    last = {name: one for name, one in found.items() if name not in first}
    places = sys.meta_path
    at = places.index(PathFinder) if PathFinder in places else len(places)
    places.insert(at, _Finder(first, {}))
    places.append(_Finder(last, folders))
    tracebacks.OTHERS.update({one.path: one.lines for one in found.values()})


def _read(code: str) -> dict[str, _Module]:
    found: dict[str, _Module] = {}
    lines: list[str] | None = None
    for line in code.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith(MARK):
            name, _, path = line.removeprefix(MARK).partition(" ")
            lines = []
            found[name] = _Module(name, path, lines)  # the last one of a name counts: a file may hold stored code again
        elif lines is not None and line.startswith(_LINE):
            lines.append(line.removeprefix(_LINE))
        else:
            lines = None
    return found


def _folders(found: dict[str, _Module]) -> dict[str, str]:
    """Return the parent folders of modules that have no `__init__.py`."""
    folders: dict[str, str] = {}
    for one in found.values():
        name, path = one.name, one.path.removesuffix(_PACKAGE) if one.is_package else one.path
        while "." in name:
            name, path = name.rpartition(".")[0], path.rpartition("/")[0]
            if name not in found:
                folders[name] = path
    return folders
