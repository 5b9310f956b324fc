"""Converts values that are not JSON but have an obvious JSON form.

It recognises their types without importing a package.
"""

from __future__ import annotations

import sys

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Rules: TypeAlias = "tuple[tuple[Callable[[type], bool], Callable[[Any], Coerced]], ...]"

_ARRAYS = {("numpy", "generic"), ("numpy", "ndarray"), ("torch", "Tensor"), ("torch._tensor", "Tensor")}
_VIEWS = frozenset((type({}.keys()), type({}.values()), type({}.items())))
_modules = sys.modules


class NoForm(Exception):
    """The value cannot be written as JSON."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Coerced:
    """A value after one step of conversion.

    `taken_as` describes the step for the author, and is None for an obvious step.
    """

    __slots__ = ("plain", "taken_as")

    def __init__(self, plain: Any, taken_as: str | None = None) -> None:
        self.plain = plain
        self.taken_as = taken_as


def type_name(kind: type) -> str:
    """Return the name of a type as it appears in code, with its module unless the type is built in."""
    module: object = kind.__module__  # user code can set `__module__` to any object
    name = kind.__qualname__
    if not isinstance(module, str) or module in {"builtins", "evaluator", "evaluator_runner.binding"}:
        return str(name)[:100]
    return f"{module}.{name}"[:100]


def coerce(value: Any, *, whole: bool) -> Coerced:
    """Convert a value to a simpler one, one step nearer to plain JSON.

    `whole` is true if the value is the whole result, not a part of it.

    Raises:
      NoForm: the value has no obvious JSON form.
    """
    kind = type(value)
    for applies, convert in _WHOLE_RULES if whole else _PART_RULES:
        try:
            if applies(kind):
                return convert(value)
        except NoForm:
            raise
        except Exception:  # noqa: BLE001 - user code behind a property, `item` or `model_dump`
            raise NoForm(type_name(kind)) from None
    raise NoForm(type_name(kind))


def _is_a(module: str, name: str) -> Callable[[type], bool]:
    def applies(kind: type) -> bool:
        base = getattr(_modules.get(module), name, None)
        return isinstance(base, type) and issubclass(kind, base)

    return applies


def _array_base(kind: type) -> type | None:
    for base in kind.__mro__:
        if (base.__module__, base.__name__) in _ARRAYS:
            return base
    return None


def _from_array(value: Any) -> Coerced:
    base: Any = _array_base(type(value))
    if value.ndim != 0:
        raise NoForm(type_name(type(value)))
    plain = base.item(value)
    if type(plain) is str:
        return Coerced(plain, "a string")
    if type(plain) not in {bool, int, float}:
        raise NoForm(type_name(type(value)))
    return Coerced(plain)


def _from_decimal(value: Any) -> Coerced:
    try:
        return Coerced(float(_modules["decimal"].Decimal.__float__(value)), "a number")
    except (ValueError, OverflowError):  # `float` raises a ValueError for a signalling NaN
        return Coerced(float("nan"), "a number")


def _from_fraction(value: Any) -> Coerced:
    try:
        return Coerced(float(_modules["fractions"].Fraction.__float__(value)), "a number")
    except OverflowError:
        return Coerced(float("inf"), "a number")


def _from_fields(value: Any, names: Any) -> Coerced:
    return Coerced({str(name): getattr(value, name) for name in names}, "an object")


def _from_model(value: Any) -> Coerced:
    return Coerced(_exact_dict(value.model_dump(mode="json")), "an object")


def _exact_dict(value: Any) -> dict[Any, Any]:
    if not issubclass(type(value), dict):
        raise NoForm(type_name(type(value)))
    return dict(dict.items(value))


def _from_error(value: Any) -> Coerced:
    name, message = type_name(type(value)), str.__str__(str(value))
    return Coerced(f"{name}: {message}" if message else name, "text")


def _from_set(value: Any) -> Coerced:
    items = list(frozenset.__iter__(value) if isinstance(value, frozenset) else set.__iter__(value))
    try:
        return Coerced(sorted(items), "a sorted list")
    except TypeError:
        return Coerced(items, "a list")


def _from_tuple(value: Any, taken_as: str | None) -> Coerced:
    return Coerced(list(tuple.__iter__(value)), taken_as)


def _is_dataclass(kind: type) -> bool:
    return isinstance(getattr(kind, "__dataclass_fields__", None), dict)


def _dataclass_fields(value: Any) -> list[str]:
    fields = type(value).__dataclass_fields__
    return [name for name, field in fields.items() if field._field_type.name == "_FIELD"]  # noqa: SLF001 - no ClassVar


_RULES: Rules = (
    (_is_a("enum", "Enum"), lambda value: Coerced(value._value_, "its value")),
    (lambda kind: issubclass(kind, str), lambda value: Coerced(str.__str__(value))),
    (lambda kind: issubclass(kind, float), lambda value: Coerced(float.__float__(value))),
    (lambda kind: issubclass(kind, int), lambda value: Coerced(int.__int__(value))),
    (lambda kind: issubclass(kind, dict), lambda value: Coerced(dict(dict.items(value)))),
    (lambda kind: issubclass(kind, list), lambda value: Coerced(list(list.__iter__(value)))),
    (
        lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"),
        lambda value: Coerced(dict(zip(type(value)._fields, tuple.__iter__(value), strict=False)), "an object"),
    ),
    (_is_a("decimal", "Decimal"), _from_decimal),
    (_is_a("fractions", "Fraction"), _from_fraction),
    (lambda kind: _array_base(kind) is not None, _from_array),
    (_is_dataclass, lambda value: _from_fields(value, _dataclass_fields(value))),
    (lambda kind: callable(getattr(kind, "model_dump", None)), _from_model),
    (
        lambda kind: isinstance(getattr(kind, "__attrs_attrs__", None), tuple),
        lambda value: _from_fields(value, [field.name for field in type(value).__attrs_attrs__]),
    ),
)
_MATCHED = "True; wrap it in bool(…), because None (no match) is not a score"
_WHOLE_RULES: Rules = (
    *_RULES,
    (_is_a("re", "Match"), lambda _: Coerced(plain=True, taken_as=_MATCHED)),
    (lambda kind: issubclass(kind, tuple), lambda value: _from_tuple(value, None)),
)
# rules for values inside a result; as whole results, a text would be a label, and a set has no order
_PART_RULES: Rules = (
    *_RULES,
    (lambda kind: issubclass(kind, tuple), lambda value: _from_tuple(value, "a list")),
    (_is_a("datetime", "date"), lambda value: Coerced(str.__str__(value.isoformat()), "text")),
    (_is_a("datetime", "time"), lambda value: Coerced(str.__str__(value.isoformat()), "text")),
    (_is_a("uuid", "UUID"), lambda value: Coerced(str.__str__(str(value)), "text")),
    (_is_a("pathlib", "PurePath"), lambda value: Coerced(str.__str__(str(value)), "text")),
    (lambda kind: issubclass(kind, bytes | bytearray), lambda value: Coerced(bytes(value).decode(), "text")),
    (lambda kind: issubclass(kind, set | frozenset), _from_set),
    (lambda kind: kind in _VIEWS, lambda value: Coerced(list(value), "a list")),
    (_is_a("collections", "deque"), lambda value: Coerced(list(value), "a list")),
    (lambda kind: issubclass(kind, BaseException), _from_error),
)
