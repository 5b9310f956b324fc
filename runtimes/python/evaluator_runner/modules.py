"""Imports modules that come with an evaluator: the `.py` files among the `files` of its load.

A module in the root of the files, or in a package there, is found before installed packages, as in a process that is
started in that folder. Modules beside an evaluator in a deeper folder, and folders without `__init__.py`, are found
after installed packages.

Imports use the names of modules; tracebacks show the paths of files.
"""

from __future__ import annotations

import builtins as _builtins
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder

from evaluator_runner import tracebacks
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import Loader
    from types import ModuleType
    from typing import Any
else:
    Loader = object  # importlib.abc takes long to import

SUFFIX = ".py"
_PACKAGE = "/__init__.py"


class _Module(Loader):
    """The source of a module, and its loader."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def create_module(self, _spec: Any) -> None:
        """Return None, so that the interpreter creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        code = compile(self.text, self.path, "exec", dont_inherit=True)
        vars(module)["__builtins__"] = vars(_builtins)  # the evaluator's built-ins, not the runner's own copy
        exec(code, vars(module))  # noqa: S102

    def get_source(self, _name: str = "") -> str:
        """Return the source, for `linecache` and `inspect`."""
        return self.text

    def get_data(self, path: str) -> bytes:
        """Return the content of a data file, for `pkgutil`."""
        with open(path, "rb") as file:
            return file.read()


class _Finder:
    """Finds modules among the files of an evaluator.

    Args:
      files: Contents of the files, by path.
      bases: Folders in which top-level modules are searched for.
      folders: All folders that contain the files.
      whole: Whether a folder without `__init__.py` is a package.
    """

    def __init__(self, files: dict[str, str], bases: list[str], folders: frozenset[str], *, whole: bool) -> None:
        self._files = files
        self._bases = bases
        self._folders = folders
        self._whole = whole

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        part = name.rpartition(".")[2]
        places = self._bases if path is None else [place for place in path if place in self._folders]
        stems = [f"{place}/{part}" if place else part for place in places]
        for stem in stems:
            for file in (stem + _PACKAGE, stem + SUFFIX):
                if file in self._files:
                    return self._spec(name, file)
        if self._whole:
            for stem in stems:
                if stem in self._folders:
                    return _folder(name, stem)
        return None

    def _spec(self, name: str, file: str) -> Any:
        is_package = file.endswith(_PACKAGE)
        spec = ModuleSpec(name, _Module(file, self._files[file]), origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [file.removesuffix(_PACKAGE)]
        return spec


def _folder(name: str, path: str) -> Any:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [path]
    return spec


def install(body: dict[str, Any], own_path: str) -> None:
    """Make an evaluator's modules importable in this process, and the evaluator itself as a module of its package.

    Args:
      body: The body of the evaluator's load: the code, and the files that came with it, by path from their root.
      own_path: Path of the evaluator itself among these files.
    """
    texts = {path: text for path, text in (body.get("files") or {}).items() if path.endswith(SUFFIX)}
    beside = own_path.rpartition("/")[0]
    deeper = [beside] if beside else []
    if not texts:
        return
    if own_path != tracebacks.FILENAME:
        texts.setdefault(own_path, body["code"])
    folders = frozenset(above for path in texts for above in _above(path))
    places = sys.meta_path
    at = places.index(PathFinder) if PathFinder in places else len(places)
    places.insert(at, _Finder(texts, [""], folders, whole=False))
    places.append(_Finder(texts, ["", *deeper], folders, whole=True))
    tracebacks.OTHERS.update({path: text.split("\n") for path, text in texts.items()})


def package_of(own_path: str) -> str:
    """Return the package in which relative imports of an evaluator begin, or "" if the evaluator is in the root."""
    return own_path.rpartition("/")[0].replace("/", ".")


def _above(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
