"""Guards code under the restricted policy at run time: its built-ins, its imports, its access to attributes.

The sandbox is the security boundary. These guards only limit evaluators to the needs of a scoring function.
"""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import builtins
import operator
import os
import string
from types import FunctionType, ModuleType

from RestrictedPython.Guards import (
    guarded_iter_unpack_sequence,
    guarded_unpack_sequence,
    safe_builtins,
)
from RestrictedPython.transformer import INSPECT_ATTRIBUTES

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import ForbiddenAttribute, ForbiddenImport, PolicyViolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MODULES = frozenset(
    (
        *("__future__", "abc", "base64", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses"),
        *("datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html"),
        *("itertools", "json", "math", "numbers", "operator", "random", "re", "statistics", "string", "textwrap"),
        *("time", "typing", "unicodedata", "uuid", "zoneinfo"),
    )
)
_SUBMODULES = frozenset(("collections.abc", "json.decoder", "json.encoder", "urllib.parse"))
_BEHIND = {"_collections_abc", "_operator", "_decimal", "urllib"}  # the modules that define allowed names
_FORBIDDEN_NAMES = {  # they access attributes or run text without these guards
    ("operator", "attrgetter"),
    ("operator", "methodcaller"),
    ("string", "Formatter"),
    ("typing", "ForwardRef"),
    ("typing", "get_type_hints"),
    ("dataclasses", "make_dataclass"),
}
_ADDED_BUILTINS = (
    *("all", "any", "ascii", "bin", "bytearray", "bytes", "classmethod", "dict", "enumerate", "filter", "format"),
    *("frozenset", "iter", "list", "map", "max", "min", "next", "object", "print", "property", "reversed", "set"),
    *("sorted", "staticmethod", "sum", "super", "tuple", "zip"),
    *("RecursionError", "StopAsyncIteration", "TimeoutError", "ExceptionGroup", "NotImplemented"),
)
_REFUSED_BUILTINS = (
    *("open", "eval", "exec", "compile", "input", "globals", "locals", "vars", "dir", "breakpoint", "memoryview"),
    *("exit", "quit", "help"),
)
_IN_PLACE = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
    "|=": operator.ior,
    "^=": operator.ixor,
    "&=": operator.iand,
    "//=": operator.ifloordiv,
    "@=": operator.imatmul,
}
_MISSING = object()
_import = builtins.__import__
_getattr = getattr


def namespace(packages: list[str]) -> dict[str, Any]:
    """Return the initial globals of restricted code; modules in the folders `packages` may be imported too."""
    modules = _Modules(packages)
    return {
        "__builtins__": _restricted_builtins(modules),
        "_getattr_": modules.read_attribute,
        "_getitem_": operator.getitem,
        "_getiter_": lambda iterable: iterable,
        "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
        "_unpack_sequence_": guarded_unpack_sequence,
        "_inplacevar_": _in_place,
        "_write_": _check_write,
        "_apply_": lambda function, *args, **kwargs: function(*args, **kwargs),
    }


def _restricted_builtins(modules: _Modules) -> dict[str, Any]:
    def guarded_getattr(target: Any, name: str, default: Any = _MISSING) -> Any:
        return modules.read_attribute(target, name, default)

    def guarded_hasattr(target: Any, name: str) -> bool:
        return modules.read_attribute(target, name, _MISSING_ATTRIBUTE) is not _MISSING_ATTRIBUTE

    own = {name: _getattr(builtins, name) for name in _ADDED_BUILTINS}
    refused = {name: _refuse(name) for name in _REFUSED_BUILTINS}
    return {
        **safe_builtins,
        **own,
        **refused,
        "getattr": guarded_getattr,
        "hasattr": guarded_hasattr,
        "setattr": _guarded_setattr,
        "delattr": _guarded_delattr,
        "type": _type_of,
        "__import__": modules.guarded_import,
    }


_MISSING_ATTRIBUTE = object()


def _in_place(sign: str, left: Any, right: Any) -> Any:
    return _IN_PLACE[sign](left, right)  # type: ignore[no-untyped-call]


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*_args: Any, **_kwargs: Any) -> Any:
        raise PolicyViolation(f"`{name}` is not available under the restricted policy")

    return refused


def _type_of(value: Any) -> type:
    return type(value)


def check_name(name: str) -> None:
    """Refuse attribute names that would bypass the guards.

    Raises:
      ForbiddenAttribute: the name is one of these.
    """
    if type(name) is not str or name.startswith("_") or name in INSPECT_ATTRIBUTES:
        raise ForbiddenAttribute(f"attribute {name!r} is not accessible under the restricted policy")


def _check_write(target: Any) -> Any:
    if isinstance(target, ModuleType | type | FunctionType):
        raise PolicyViolation(f"a {type(target).__name__} must not be changed under the restricted policy")
    return target


def _guarded_setattr(target: Any, name: str, value: Any) -> None:
    check_name(name)
    setattr(_check_write(target), name, value)


def _guarded_delattr(target: Any, name: str) -> None:
    check_name(name)
    delattr(_check_write(target), name)


class _SafeFormatter(string.Formatter):
    """Formats like `str.format`; its fields can read only the attributes that the code itself may read."""

    def __init__(self, modules: _Modules) -> None:
        self._modules = modules

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any]:
        first, rest = _string.formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            value = self._modules.read_attribute(value, name) if is_attribute else value[name]
        return value, first


class _Modules:
    """Decides which modules may be imported, and read as attributes of other modules."""

    def __init__(self, packages: list[str]) -> None:
        entries = [entry for folder in packages for entry in os.listdir(folder)]
        self._pinned = frozenset(entry.partition(".")[0] for entry in entries)
        self._formatter = _SafeFormatter(self)

    def allows(self, name: str) -> bool:
        """Return whether a module may be imported, by its full name."""
        top = name.partition(".")[0]
        return name in MODULES or name in _SUBMODULES or top in self._pinned

    def guarded_import(
        self, name: str, globals_: Any = None, locals_: Any = None, fromlist: Sequence[str] = (), level: int = 0
    ) -> Any:
        """Import a module that is on the list or belongs to a pinned package."""
        if level or not self.allows(name):
            raise ForbiddenImport(f"importing `{'.' * level}{name}` is not allowed under the restricted policy")
        module = _import(name, globals_, locals_, fromlist, level)
        for wanted in fromlist or ():
            self.read_attribute(module, wanted, None)
        return module

    def read_attribute(self, target: Any, name: str, default: Any = _MISSING) -> Any:
        """Return an attribute if the policy allows it; `default` works as in `getattr`."""
        check_name(name)
        if isinstance(target, str) and name in {"format", "format_map"}:
            return self._format_of(target, name)
        value = _getattr(target, name) if default is _MISSING else _getattr(target, name, default)
        if isinstance(target, ModuleType) and (target.__name__, name) in _FORBIDDEN_NAMES:
            raise ForbiddenAttribute(f"`{target.__name__}.{name}` is not available under the restricted policy")
        if isinstance(value, ModuleType) and not self.allows(value.__name__) and value.__name__ not in _BEHIND:
            raise ForbiddenAttribute(f"module `{value.__name__}` is not accessible under the restricted policy")
        return value

    def _format_of(self, text: str, name: str) -> Callable[..., str]:
        if name == "format_map":
            return lambda mapping: self._formatter.vformat(text, (), mapping)
        return lambda *args, **kwargs: self._formatter.vformat(text, args, kwargs)
