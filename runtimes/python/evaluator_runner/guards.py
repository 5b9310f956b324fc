"""Guards the built-ins, imports and attribute access of running code under the restricted policy.

The sandbox is the security boundary. The guards in this module only limit evaluators to what a scoring function needs.
"""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import abc
import builtins
import collections
import copy
import copyreg
import dataclasses
import enum
import functools
import keyword
import operator
import os
import string
import typing
from types import BuiltinMethodType, FunctionType, ModuleType, UnionType

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
# modules that code may not import, but whose names it may use if an allowed module offers them
_BEHIND = {"_collections_abc", "_operator", "_decimal", "urllib"}
_UNLISTED = {("hashlib", "scrypt")}  # names that are documented, but not in the `__all__` of their module
# Objects with which code could evade these guards: they read attributes by a name in a string, run a string, or make
# classes. They are compared by identity, because an object may have several names.
_FORBIDDEN = {
    id(value): value
    for value in (
        *(operator.attrgetter, operator.methodcaller, string.Formatter, collections.UserString),
        *(typing.ForwardRef, typing.get_type_hints, getattr(typing, "evaluate_forward_ref", None)),
        *(dataclasses.make_dataclass, functools.singledispatchmethod, copyreg.dispatch_table),
        *(abc.ABCMeta, enum.EnumMeta, getattr(enum, "global_enum", None), getattr(enum, "EnumDict", None)),
    )
    if value is not None  # some names exist only in later versions of Python
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
# attributes by which code could reach the frames and code objects of generators, functions and errors
INSPECTED = INSPECT_ATTRIBUTES | {"ag_frame", "ag_code", "ag_await"}
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
    """Return the globals with which restricted code starts.

    The code may also import modules in the folders `packages`.
    """
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


def _type_of(value: Any, *more: Any, **options: Any) -> Any:
    """Return the class of a value.

    For a class, return this function itself, because metaclasses make unguarded classes.
    """
    if more or options:
        raise PolicyViolation("`type` cannot make classes under the restricted policy; write a class statement")
    return _type_of if isinstance(value, type) else type(value)


def check_name(name: str) -> None:
    """Refuse attribute names that would bypass the guards.

    Raises:
      ForbiddenAttribute: the name would bypass the guards.
    """
    if type(name) is not str or name.startswith("_") or name in INSPECTED:
        raise ForbiddenAttribute(f"attribute {name!r} is not accessible under the restricted policy")


def _check_write(target: Any) -> Any:
    if isinstance(target, ModuleType | type | FunctionType | dataclasses.Field | functools.cached_property):
        raise PolicyViolation(f"a {type(target).__name__} must not be changed under the restricted policy")
    return target


def _guarded_setattr(target: Any, name: str, value: Any) -> None:
    check_name(name)
    setattr(_check_write(target), name, value)


def _guarded_delattr(target: Any, name: str) -> None:
    check_name(name)
    delattr(_check_write(target), name)


class _SafeFormatter(string.Formatter):
    """Formats like `str.format`, but fields can read only attributes that the code itself may read."""

    def __init__(self, modules: _Modules) -> None:
        self._modules = modules

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any]:
        first, rest = _string.formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            value = self._modules.read_attribute(value, name) if is_attribute else value[name]
        return value, first


class _Modules:
    """Decides which modules code may import, or may read as attributes of other modules."""

    def __init__(self, packages: list[str]) -> None:
        entries = [entry for folder in packages for entry in os.listdir(folder)]
        self._pinned = frozenset(entry.partition(".")[0] for entry in entries)
        self._formatter = _SafeFormatter(self)

    def allows(self, name: str) -> bool:
        """Return whether the module with this full name may be imported."""
        top = name.partition(".")[0]
        return name in MODULES or name in _SUBMODULES or top in self._pinned

    def guarded_import(
        self, name: str, globals_: Any = None, locals_: Any = None, fromlist: Sequence[str] = (), level: int = 0
    ) -> Any:
        """Import a module that the policy allows or that belongs to a pinned package."""
        if level or not self.allows(name):
            raise ForbiddenImport(f"importing `{'.' * level}{name}` is not allowed under the restricted policy")
        module = _import(name, globals_, locals_, fromlist, level)
        if not fromlist:
            return module
        # the code gets a copy, because attributes of the original are read without these guards
        guarded = ModuleType(module.__name__)
        for wanted in fromlist:
            value = self.read_attribute(module, wanted, _MISSING_ATTRIBUTE)
            if value is not _MISSING_ATTRIBUTE:
                setattr(guarded, wanted, value)
        return guarded

    def read_attribute(self, target: Any, name: str, default: Any = _MISSING) -> Any:
        """Return an attribute if the policy allows it; `default` works as in `getattr`."""
        check_name(name)
        value = _getattr(target, name) if default is _MISSING else _getattr(target, name, default)
        if isinstance(value, ModuleType):
            if not self.allows(value.__name__) and value.__name__ not in _BEHIND:
                raise ForbiddenAttribute(f"module `{value.__name__}` is not accessible under the restricted policy")
            return value
        if id(value) in _FORBIDDEN or (isinstance(target, ModuleType) and not _is_public(target, name)):
            raise ForbiddenAttribute(f"`{name}` is not available under the restricted policy")
        if isinstance(target, typing.ForwardRef):
            raise ForbiddenAttribute("a forward reference is not accessible under the restricted policy")
        if name in {"format", "format_map"}:
            return self._format_of(value)
        return _GUARDED.get(id(value), value)

    def _format_of(self, method: Any) -> Any:
        """Replace `format` methods of strings, bound or not, with guarded ones; return any other value unchanged."""
        if method is str.format:
            return lambda text, /, *args, **kwargs: self._formatter.vformat(_text(text), args, kwargs)
        if method is str.format_map:
            return lambda text, mapping, /: self._formatter.vformat(_text(text), (), mapping)
        if not isinstance(method, BuiltinMethodType) or not isinstance(method.__self__, str):
            return method
        text = str.__str__(method.__self__)
        if method.__name__ == "format_map":
            return lambda mapping: self._formatter.vformat(text, (), mapping)
        return lambda *args, **kwargs: self._formatter.vformat(text, args, kwargs)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a string is needed, not {type(value).__name__}")
    return str.__str__(value)


def _is_public(module: ModuleType, name: str) -> bool:
    """Return whether a name belongs to the interface of an allowed module. Names that the module imports do not."""
    listed = _getattr(module, "__all__", None)
    return (
        listed is None
        or name in listed
        or (module.__name__, name) in _UNLISTED
        or (module.__name__ not in MODULES and module.__name__ not in _SUBMODULES)
    )


def _update_wrapper(wrapper: Any, wrapped: Any, *more: Any, **options: Any) -> Any:
    """Do what `functools.update_wrapper` does with the default attributes, for a wrapper that the code defines."""
    if more or options:
        raise PolicyViolation("the attributes of a wrapper cannot be chosen under the restricted policy")
    if isinstance(wrapper, ModuleType | type) or isinstance(wrapped, ModuleType | type):
        raise PolicyViolation("a module or class can neither wrap nor be wrapped under the restricted policy")
    if isinstance(wrapper, FunctionType) and wrapper.__globals__.get("_write_") is not _check_write:
        raise PolicyViolation("a function of a library must not be changed under the restricted policy")
    return functools.update_wrapper(wrapper, wrapped)


def _wraps(wrapped: Any, *more: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda wrapper: _update_wrapper(wrapper, wrapped, *more, **options)


def _singledispatch(function: Any) -> Any:
    """Do what `functools.singledispatch` does, without annotations, because their strings would be evaluated."""
    made = functools.singledispatch(function)
    register = made.register

    def guarded_register(cls: Any, func: Any = None) -> Any:
        if not isinstance(cls, type | UnionType):
            raise PolicyViolation(
                "under the restricted policy, `register` needs the class as its argument: `@function.register(int)`"
            )
        return register(cls, func)

    made.register = guarded_register  # type: ignore[method-assign]
    return made


def _dataclass(cls: Any = None, /, **options: Any) -> Any:
    """Do what `dataclasses.dataclass` does, but first check the field names, which Python would run as source."""
    if cls is None:
        return lambda cls: _dataclass(cls, **options)
    names = cls.__annotations__ if isinstance(cls, type) and not isinstance(cls, enum.EnumMeta) else None
    if type(names) is not dict or not all(type(name) is str and _is_field(name) for name in names):
        raise PolicyViolation("a dataclass needs a class whose fields have plain names under the restricted policy")
    return dataclasses.dataclass(cls, **options)


def _is_field(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def _guard_copies() -> None:
    """Prevent `copy` from setting attributes of modules, classes and functions that a `__reduce__` returns."""
    reconstruct = copy._reconstruct  # type: ignore[attr-defined]  # noqa: SLF001

    def guarded(original: Any, memo: Any, make: Any, args: Any, *rest: Any, **options: Any) -> Any:
        return reconstruct(original, memo, lambda *given: _check_write(make(*given)), args, *rest, **options)

    copy._reconstruct = guarded  # type: ignore[attr-defined]  # noqa: SLF001


_guard_copies()
_GUARDED = {
    id(functools.wraps): _wraps,
    id(functools.update_wrapper): _update_wrapper,
    id(functools.singledispatch): _singledispatch,
    id(dataclasses.dataclass): _dataclass,
}
