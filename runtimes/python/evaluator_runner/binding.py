"""Binds a row's variables to the parameters of `main`.

Code can also read the keys of JSON objects as attributes.
"""

from __future__ import annotations

import sys

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from evaluator_runner.entry import Entry


class _LikeDict(type):
    """Makes a subclass of dict equal to `dict`, so that `type(value) == dict` is true for the JSON objects in a row.

    The subclass keeps its own hash: `copy` and `pickle` look up types by hash, and would make plain dicts otherwise.
    """

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, dict)

    def __eq__(cls, other: object) -> bool:
        return other is dict or other is cls

    __hash__ = type.__hash__


class AttributeDict(dict, metaclass=_LikeDict):  # type: ignore[type-arg]
    """A JSON object that `main` gets: `d.a` is `d["a"]`, unless `a` is a method of dict."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the object has no key {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"the object has no key {name!r}") from None


def called(call: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> Any:
    """Call a function with the running event loop hidden, so that the function may use `asyncio.run`."""
    events = sys.modules.get("asyncio.events")
    loop = events and events._get_running_loop()  # noqa: SLF001 - asyncio has no public function for this
    if events is None or loop is None:
        return call(*args, **named)
    events._set_running_loop(None)  # noqa: SLF001 - as above
    try:
        return call(*args, **named)
    finally:
        events._set_running_loop(loop)  # noqa: SLF001 - as above


def bind(entry: Entry, named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments with which to call `entry` for a row's variables.

    Raises:
      Failure: the row has no variable for a parameter without default.
    """
    parameters = entry.signature
    if parameters is None:
        return [], dict(named)
    args: list[Any] = []
    rest = dict(named)
    missing = [name for name in parameters.positional[: parameters.required] if name not in named]
    missing += [name for name, has_default in parameters.keyword_only.items() if not has_default and name not in named]
    if missing:
        raise _missing(entry.name, missing, named)
    for name in parameters.positional[: parameters.positional_only]:
        if name not in rest:
            break
        args.append(rest.pop(name))
    by_keyword = {*parameters.positional[parameters.positional_only :], *parameters.keyword_only}
    if parameters.var_keyword is None:
        rest = {name: value for name, value in rest.items() if name in by_keyword}
    return args, rest


def _missing(entry: str, missing: list[str], named: dict[str, Any]) -> Failure:
    names = ", ".join(f"`{name}`" for name in missing)
    available = ", ".join(f"`{name}`" for name in list(named)[:50]) or "none"
    return Failure(
        "missing_input",
        f"`{entry}` needs {names}, which the row does not have; the row has: {available}",
        hint="add the variable to the row, rename the parameter, or give it a default",
    )
