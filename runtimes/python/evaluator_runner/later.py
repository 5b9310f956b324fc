"""Lets code load although it imports packages that are not pinned; only uses of these packages fail.

If a well-known package or one of the author's files is missing, a placeholder takes its place. While the code loads,
the placeholder can be called and read; later, its use raises an `ImportError` that names what is missing. If the entry
needs a placeholder (`whole.py`), the code does not load at all, unless the placeholder stands for a client of a model
or platform, which most evaluators call in one function only. Packages that are installed are never replaced, and an
import that the code catches fails as usual. A name that a light module (the runner's small replacement of a platform's
package) lacks is a placeholder, too, because a file may import a judge that its evaluator never calls.

A placeholder has no value: code that compares, tests, counts or formats a placeholder gets an error, even while the
code loads.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder

from evaluator_runner import absent, imports, tracebacks
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.dialects.clients import PACKAGES, RECORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.abc import Loader
    from types import FrameType
    from typing import Any
else:
    Loader = object  # importlib.abc takes long to import

_DECORATORS = frozenset(("observe", "traceable", "trace", "traced", "tool", "chain"))
_REGISTERS = "register"
"""The first word in the names of decorators that only register a function, and do not change it."""
_ONLY_AST = 0x400
_SHOWN_NAMES = 50
_NAME_CHARS = 200
_frame = sys._getframe  # noqa: SLF001 - the public functions make a list of all frames
_loading = [True]
_given: dict[str, None] = {}  # dotted names of absent modules, and of placeholders from light modules, in order


def install(code: str, known: dict[str, str]) -> None:
    """Let the code import absent clients and absent `known` packages. `known` has distributions by module."""
    if known or names_client(code):
        sys.meta_path.append(Finder(code, Known(known)))


def names_client(code: str) -> bool:
    """Return whether code contains the name of a client package, so that it may import the client."""
    return any(name in code for name in PACKAGES)


def install_stand_ins(folder: str) -> None:
    """Let the light modules in a folder give placeholders for names and modules that they lack."""
    sys.meta_path.insert(sys.meta_path.index(PathFinder), StandIns(folder))


def without_placeholders(namespace: dict[str, Any]) -> dict[str, Any]:
    """Return code's globals without names that only seem to be evaluators.

    These are placeholders, which seem to have every attribute that dialects look for, and the function `evaluate` of a
    light module, which would run an experiment.
    """
    found = {name: one for name, one in namespace.items() if not is_placeholder(one)} if _given else namespace
    runs: Any = found.get("evaluate")
    if type(runs) is not type(_is_of_light_module) or runs.__name__ != "evaluate" or not _is_of_light_module(runs):
        return found
    return {name: one for name, one in found.items() if one is not runs}


def _is_of_light_module(function: Any) -> bool:
    top = str(function.__module__).partition(".")[0]
    return any(isinstance(one, StandIns) and one.stands_in(top) for one in sys.meta_path)


def import_or_stand_in(module: str, name: str) -> Any:
    """Import a module; if it is not installed, return a placeholder whose use raises an `ImportError` with the pin."""
    try:
        return __import__(module)
    except ImportError:
        return _Later(module, name)


def is_stand_in(module: Any) -> bool:
    """Return whether a module is a placeholder for a package that is not pinned."""
    return type(module) is _Module


def is_placeholder(one: Any) -> bool:
    """Return whether an object is a placeholder for a part of a package that is not pinned."""
    return type(one) is _Later or type(one) is _Module


def is_client(module: str) -> bool:
    """Return whether a module belongs to a client package, whose clients code may create but never use."""
    return module.partition(".")[0] in PACKAGES


class Known:
    """The absent packages that code may import although they are not pinned.

    Args:
      packages: Their distributions, by module; "" for a module of no known package, which is probably the author's.
    """

    def __init__(self, packages: dict[str, str]) -> None:
        self._packages = packages
        self._beginnings = {one for module in packages for one in _beginnings(module)}

    def may_stand_in(self, module: str) -> bool:
        """Return whether a placeholder may replace a module: it belongs to a client, a known package or the author."""
        return is_client(module) or self.has(module)

    def names(self, module: str) -> bool:
        """Return whether a module is one of the packages."""
        return module in self._packages

    def has(self, module: str) -> bool:
        """Return whether a module is one of the packages, a part of one, or a package that contains one."""
        return module in self._beginnings or self._around(module) is not None

    def provider(self, module: str) -> str | None:
        """Return the distribution of an absent module, "" for a file of the author, or None if none is known."""
        client: str | None = PACKAGES.get(module.partition(".")[0])
        around = self._around(module)
        return client if around is None else client or self._packages[around]

    def _around(self, module: str) -> str | None:
        return next((one for one in _beginnings(module) if one in self._packages), None)


def _beginnings(module: str) -> Iterator[str]:
    """Yield a module, and the packages that contain it, from the inside out."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def is_well_known(module: str) -> bool:
    """Return whether an absent module belongs to a well-known package that no light module replaces."""
    return "__known__" in vars(sys.modules[module])


def is_own(module: str) -> bool:
    """Return whether an absent module is probably a file that the author wrote, because no known package has it."""
    return _known_to(sys.modules[module]).provider(module) == ""


def registers(name: str) -> bool:
    """Return whether the name of a decorator says that it only adds the function to a table."""
    return name.partition("_")[0] == _REGISTERS


def is_light(module: str) -> bool:
    """Return whether a light module replaces the package to which a module belongs."""
    top = module.partition(".")[0]
    return any(isinstance(one, StandIns) and one.stands_in(top) for one in sys.meta_path)


def lacks(module: str, name: str) -> bool:
    """Return whether a light module does not exist, or lacks this name of the package that it replaces."""
    if module in _given or f"{module}.{name}" in _given:
        return True
    return module in sys.modules and not hasattr(sys.modules[module], name)


def lacking_of(*modules: str) -> list[str]:
    """Return the names that these light modules (or modules below them) lack, although code has tried to read them."""
    parts = [name.rpartition(".") for name in _given]
    return [name for module, _, name in parts if any(f"{module}.".startswith(f"{one}.") for one in modules)]


def loaded() -> list[str]:
    """End the loading phase.

    From now on, the use of a placeholder raises an `ImportError`.

    Returns:
      What was not loaded: absent modules, and names that light modules lack.
    """
    stop()
    names = [name for name in _given if not name.endswith(".__all__")]
    around = {one for name in names for one in _beginnings(name) if one != name}
    return [name[:_NAME_CHARS] for name in names if name not in around][:_SHOWN_NAMES]


def stop() -> None:
    """From now on, let every import of an absent module fail, even if there is a placeholder for the module."""
    _loading[0] = False
    for name, module in list(sys.modules.items()):
        if type(module) is _Module:
            del sys.modules[name]


def stand_in_relative(node: Any) -> dict[str, Any]:
    """Return placeholders for the names of a relative import that fails because the code is not in a package."""
    name = "." * node.level + (node.module or "")
    sys.modules[name] = module = _Module(name)
    module.__dict__["__known__"] = Known({name: ""})
    _given[name] = None
    return {alias.asname or alias.name: getattr(module, alias.name) for alias in node.names}


class _Later:
    """A placeholder for a part of a package that is not pinned. While code loads, code can call and read it."""

    def __init__(self, package: str, path: str) -> None:
        self.__dict__.update(_package=package, _path=path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return another placeholder. If the placeholder is used as a decorator, return the decorated function."""
        self._use()
        name = self._path.rpartition(".")[2].removesuffix("()")
        decorates = name in _DECORATORS or (not self._package and registers(name))
        if decorates and len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return _Later(self._package, f"{self._path}()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._use()
        return _Later(self._package, f"{self._path}.{name}")

    def __setattr__(self, _name: str, _value: Any) -> None:
        self._use()

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __getitem__(self, _key: Any) -> Any:
        self._use()
        return _Later(self._package, f"{self._path}[…]")

    def __setitem__(self, _key: Any, _value: Any) -> None:
        self._use()

    def __mro_entries__(self, _bases: Any) -> tuple[type, ...]:
        self._use()
        return (_base(self._package, self._path),)

    def __eq__(self, other: object) -> bool:
        if _is_typing(_frame(1)):  # `typing` reads placeholders in annotations such as `Optional[…]`
            return self is other
        raise _missing(self._package, self._path)

    def __hash__(self) -> int:
        if not _is_typing(_frame(1)):
            self._use()
        return object.__hash__(self)

    def __repr__(self) -> str:
        if not _is_typing(_frame(1)):
            self._use()
        return object.__repr__(self)

    def __dir__(self) -> Any:
        self._use()
        return object.__dir__(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Return the class.

        If the evaluator's own code uses `isinstance`, raise an error, because no answer would be right.
        """
        file = _frame(1).f_code.co_filename
        if file == tracebacks.FILENAME or file in tracebacks.OTHERS:
            raise _missing(self._package, self._path)
        return _Later

    def _use(self) -> None:
        if not _loading[0]:
            raise _missing(self._package, self._path)

    def _refuse(self, *_args: Any) -> Any:
        raise _missing(self._package, self._path)


_VALUES = (
    "abs add aenter aexit aiter and await bool bytes ceil complex contains delitem divmod enter exit float floor "
    "floordiv format fspath ge gt iadd index instancecheck int invert iter le len lshift lt matmul mod mul ne neg next "
    "pos pow radd rand rdivmod reversed rfloordiv rlshift rmatmul rmod rmul round rpow rrshift rshift rsub rtruediv "
    "rxor str sub subclasscheck truediv trunc xor"
)
for _name in _VALUES.split():
    setattr(_Later, f"__{_name}__", vars(_Later)["_refuse"])


def _is_typing(frame: FrameType) -> bool:
    return frame.f_code.co_filename.endswith("/typing.py")


def _missing(package: str, path: str) -> ImportError:
    top = path.partition(".")[0]
    absent.record(top)
    told = f"the package {package}, which is not pinned" if package else f"the module {top}, which does not exist"
    return ImportError(f"`{path}` needs {told}", name=path)


def _give_names(module: Any) -> None:
    """Let a light module give a placeholder for each name that it lacks."""
    if "__getattr__" in vars(module):
        return
    top = module.__name__.partition(".")[0]

    def lacking(name: str) -> Any:
        if name.startswith("_") or not _loading[0]:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)
        inner = f"{module.__name__}.{name}"
        if PathFinder.find_spec(inner, getattr(module, "__path__", [])) is not None:
            __import__(inner)
            return sys.modules[inner]
        _given[inner] = None
        return _Later(_distribution(top, module.__name__), inner)

    vars(module)["__getattr__"] = lacking


def _distribution(top: str, module: str) -> str:
    root = sys.modules.get(top)
    pins: dict[str, str] = getattr(root, "__pins__", {})
    pin = pins.get(module.removeprefix(f"{top}.").partition(".")[0])
    whole: str = getattr(root, "__pin__", top)
    return (pin or whole).partition("==")[0]


class StandIns(Loader):
    """Finds the light modules that replace a platform's package, and gives placeholders for names that they lack.

    Args:
      folder: The folder of the light modules.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._tops = frozenset(name.removesuffix(".py") for name in os.listdir(folder))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a light module, as finders in `sys.meta_path` do, or None for other modules.

        While code loads, it may also be the spec of a placeholder for a submodule that a light module lacks.
        """
        top, _, rest = name.partition(".")
        if top not in self._tops or (rest and not self.stands_in(top)):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None:
            return ModuleSpec(name, self, is_package=True) if rest and _loading[0] else None
        loader = spec.loader
        if loader is None or not (spec.origin or "").startswith(self._folder):
            return None
        run = loader.exec_module

        def run_and_give_names(module: Any) -> None:
            run(module)
            _give_names(module)

        loader.exec_module = run_and_give_names  # type: ignore[method-assign]
        return spec

    def create_module(self, spec: Any) -> Any:
        """Return an empty module for a module that the light modules lack."""
        _given[spec.name] = None
        return _Module(spec.name)

    def exec_module(self, _module: Any) -> None:
        """Do nothing: the names in the module are made when they are read."""

    def stands_in(self, top: str) -> bool:
        """Return whether a loaded top-level module is one of the light modules."""
        return (getattr(sys.modules.get(top), "__file__", None) or "").startswith(self._folder)


def _record(module: str, name: str) -> type:
    def keep(self: Any, **fields: Any) -> None:
        self.__dict__.update(fields)

    return type(name, (), {"__init__": keep, "__module__": module})


def _base(package: str, path: str) -> type:
    """Return a class from which code can inherit, but which code cannot instantiate."""

    def refuse(_cls: type, *_args: Any, **_kwargs: Any) -> Any:
        if _loading[0]:
            return _Later(package, f"{path}()")
        raise _missing(package, path)

    members = {"__new__": refuse, "__init_subclass__": classmethod(lambda _cls, **_kwargs: None)}
    return type(path.rpartition(".")[2], (), members)


class _Module(type(sys)):  # type: ignore[misc]
    """A placeholder for a module of a package that is not pinned."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        top = self.__name__.partition(".")[0]
        if name in RECORDS.get(top, ()):
            return _record(self.__name__, name)
        known = _known_to(self)
        if known.names(f"{self.__name__}.{name}"):
            _given[f"{self.__name__}.{name}"] = None
        package = known.provider(f"{self.__name__}.{name}")
        if package is None:
            package = _distribution(top, self.__name__)
        if not _loading[0]:
            raise _missing(package, f"{self.__name__}.{name}")
        return _Later(package, f"{self.__name__}.{name}")


def _known_to(module: Any) -> Known:
    return vars(module).get("__known__") or _NONE_KNOWN


_NONE_KNOWN = Known({})


class Finder(Loader):
    """Finds absent modules of clients and of well-known packages, after every other finder.

    Only imports in the evaluator's own code get placeholders. An import of a client gets a placeholder anywhere in the
    code, any other import only at the top level of the evaluator. There, an import in an `except` block gets a
    placeholder if the author wrote the module. An import fails as usual if the code catches the failure, or if an
    installed package imports the module.

    Args:
      code: The evaluator.
      known: The packages.
    """

    def __init__(self, code: str, known: Known) -> None:
        self._code = code
        self._known = known
        self._caught: dict[str, list[tuple[int, int]]] = {}
        body = getattr(parsed(code), "body", ())
        self._top = _lines_of_imports(body)
        handlers = [handler for node in body if type(node).__name__ == "Try" for handler in node.handlers]
        self._fallbacks = _lines_of_imports([one for handler in handlers for one in handler.body])

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """Return the spec of a module, as `sys.meta_path` requires, or None for a module whose import should fail."""
        if not _loading[0]:
            return None
        client = is_client(name)
        if not client and not self._known.has(name):
            return None
        frame = _importer()
        if frame is None or self._is_caught(frame.f_code.co_filename, frame.f_lineno):
            return None
        if not client and frame.f_code.co_filename != tracebacks.FILENAME:
            return None
        if not client and frame.f_lineno not in self._top:
            is_last_try = frame.f_lineno in self._fallbacks and self._known.provider(name) == ""
            return ModuleSpec(name, self, is_package=True) if is_last_try else None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        _given[spec.name] = None
        module = _Module(spec.name)
        module.__dict__["__known__"] = self._known
        return module

    def exec_module(self, _module: Any) -> None:
        """Do nothing: the names in the module are made when they are read."""

    def _is_caught(self, file: str, line: int) -> bool:
        if file not in self._caught:
            text = self._code if file == tracebacks.FILENAME else "\n".join(tracebacks.OTHERS[file])
            self._caught[file] = _caught_lines(text)
        return any(first <= line <= last for first, last in self._caught[file])


def _importer() -> FrameType | None:
    """Return the frame in the evaluator's own code that imports a module, or None if other code imports it."""
    frame: FrameType | None = _frame(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib._bootstrap"):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename.endswith("/importlib/__init__.py"):
        frame = frame.f_back
    file = "" if frame is None else frame.f_code.co_filename
    return frame if file == tracebacks.FILENAME or file in tracebacks.OTHERS else None


def _lines_of_imports(body: Any) -> set[int]:
    found = [one for one in body if type(one).__name__ in {"Import", "ImportFrom"}]
    plain = [one for one in found if all(alias.name != "*" for alias in one.names)]
    return {line for one in plain for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}


def parsed(code: str) -> Any:
    """Return the syntax tree of code, or None if the code does not parse."""
    try:
        return compile(code, tracebacks.FILENAME, "exec", _ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _caught_lines(code: str) -> list[tuple[int, int]]:
    """Return the first and last line of each block whose failed imports the code catches."""
    tree = parsed(code)
    left, found = [] if tree is None else [tree], []
    while left:
        node: Any = left.pop()
        kind = type(node).__name__
        tried = kind in {"Try", "TryStar"} and any(_catches(one.type) for one in node.handlers)
        suppressed = kind == "With" and any(_suppresses(one.context_expr) for one in node.items)
        if tried or suppressed:
            found.append((node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno))
        left.extend(imports.children(node))
    return found


def _catches(kind: Any) -> bool:
    if kind is None:
        return True
    if type(kind).__name__ == "Tuple":
        return any(_catches(one) for one in kind.elts)
    name = getattr(kind, "id", None)
    return name is None or not name.endswith("Error") or name in {"ImportError", "ModuleNotFoundError"}


def _suppresses(item: Any) -> bool:
    called = getattr(item, "func", None)
    return "suppress" in {getattr(called, "id", None), getattr(called, "attr", None)}
