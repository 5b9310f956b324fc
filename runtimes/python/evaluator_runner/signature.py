"""Reads the parameters of a callable. For plain functions, it does not import `inspect`, which takes 40 ms."""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_FUNCTION = type(lambda: None)
_VARARGS = 0x04
_VARKEYWORDS = 0x08


class Signature:
    """The parameters of a callable.

    Attributes:
      positional: Names of the parameters that may be given by position, in order.
      positional_only: How many of these, from the first, can only be given by position.
      required: How many of these, from the first, have no default.
      var_positional: Name of `*args`, or None.
      keyword_only: Names of keyword-only parameters, and whether each has a default.
      var_keyword: Name of `**kwargs`, or None.
    """

    __slots__ = ("keyword_only", "positional", "positional_only", "required", "var_keyword", "var_positional")

    def __init__(self, positional: list[str], *, positional_only: int, required: int) -> None:
        self.positional = positional
        self.positional_only = positional_only
        self.required = required
        self.var_positional: str | None = None
        self.keyword_only: dict[str, bool] = {}
        self.var_keyword: str | None = None

    @property
    def names(self) -> list[str]:
        """Return the parameters as code writes them, including stars."""
        names = list(self.positional)
        if self.var_positional is not None:
            names.append(f"*{self.var_positional}")
        names.extend(self.keyword_only)
        if self.var_keyword is not None:
            names.append(f"**{self.var_keyword}")
        return names

    def needed(self) -> list[str]:
        """Return the names of the parameters without default."""
        return [*self.positional[: self.required], *(one for one, has in self.keyword_only.items() if not has)]

    def takes(self, count: int) -> bool:
        """Return whether the function can be called with `count` positional arguments."""
        if not all(self.keyword_only.values()):
            return False
        return self.required <= count and (self.var_positional is not None or count <= len(self.positional))

    def named_places(self, places: tuple[str, ...]) -> tuple[str, ...]:
        """Return the arguments of a positional call that must be passed by name, because they are keyword-only."""
        return tuple(one for one in places if one in self.keyword_only)

    def fits(self, places: tuple[str, ...]) -> bool:
        """Return whether the parameters accept a call with these arguments.

        Keyword-only parameters get their arguments by name, others by position.
        """
        named = self.named_places(places)
        if not named:
            return self.takes(len(places))
        if not all(has or name in named for name, has in self.keyword_only.items()):
            return False
        left = len(places) - len(named)
        if not self.positional and self.var_positional is None:
            return True  # all arguments are passed by name, and those without a parameter are left out
        return self.required <= left and (self.var_positional is not None or left <= len(self.positional))

    def without_first(self) -> Signature:
        """Return the signature without its first parameter, as for a bound method."""
        if not self.positional:
            return self
        bound = Signature(
            self.positional[1:],
            positional_only=max(0, self.positional_only - 1),
            required=max(0, self.required - 1),
        )
        bound.var_positional, bound.keyword_only, bound.var_keyword = (
            self.var_positional,
            self.keyword_only,
            self.var_keyword,
        )
        return bound


def read(target: Any) -> Signature | None:
    """Return the signature of a callable, or None if the signature cannot be read, as for some built-in functions."""
    kind = type(target)
    if kind is _FUNCTION and "__wrapped__" not in target.__dict__ and "__signature__" not in target.__dict__:
        return _of_code(target.__code__, target.__defaults__, target.__kwdefaults__)
    if kind.__name__ == "method" and kind.__module__ == "builtins":
        inner = read(target.__func__)
        return inner.without_first() if inner is not None else None
    call = kind.__dict__.get("__call__")
    if type(call) is _FUNCTION:
        inner = read(call)
        return inner.without_first() if inner is not None else None
    return _by_inspection(target)


def _of_code(code: CodeType, defaults: tuple[Any, ...] | None, kwdefaults: dict[str, Any] | None) -> Signature:
    names = code.co_varnames
    count = code.co_argcount
    end = count + code.co_kwonlyargcount
    found = Signature(
        list(names[:count]), positional_only=code.co_posonlyargcount, required=count - len(defaults or ())
    )
    found.keyword_only = {name: name in (kwdefaults or {}) for name in names[count:end]}
    if code.co_flags & _VARARGS:
        found.var_positional = names[end]
        end += 1
    if code.co_flags & _VARKEYWORDS:
        found.var_keyword = names[end]
    return found


def _by_inspection(target: Any) -> Signature | None:
    import inspect

    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return None
    by_position = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    found = Signature(
        [p.name for p in by_position],
        positional_only=sum(p.kind is p.POSITIONAL_ONLY for p in by_position),
        required=sum(p.default is p.empty for p in by_position),
    )
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            found.var_positional = parameter.name
        elif parameter.kind is parameter.VAR_KEYWORD:
            found.var_keyword = parameter.name
        elif parameter.kind is parameter.KEYWORD_ONLY:
            found.keyword_only[parameter.name] = parameter.default is not parameter.empty
    return found
