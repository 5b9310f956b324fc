"""Provides `mockable`: a test case sets what the decorated function returns (`mockingStrategy` of type mockito)."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

_behaviors: list[dict[str, Any]] = []
_answered: dict[int, int] = {}


class UiPathMockResponseGenerationError(Exception):
    """A simulated function has no answer for these arguments, or its answer is an exception."""


class ExampleCall:
    """An example of a call, for a model that simulates the function."""

    def __init__(self, *, id: str = "", input: str = "", output: str = "") -> None:  # noqa: A002 - the field's names
        self.id = id
        self.input = input
        self.output = output


def set_behaviors(behaviors: list[dict[str, Any]]) -> None:
    """Set the answers of simulated functions from the `mockingStrategy` of a test case."""
    _behaviors[:] = behaviors
    _answered.clear()


def is_tool_simulated(tool_name: str) -> bool:
    """Return whether the test case simulates a function; underscores and spaces in names count as equal."""
    return any(one["function"].replace("_", " ") == tool_name.replace("_", " ") for one in _behaviors)


def mockable(name: str | None = None, **_described: Any) -> Any:
    """Return a decorator for functions that test cases may simulate."""

    def decorate(function: Any) -> Any:
        known = name or function.__name__

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return _answer(known, function, args, kwargs) if _is_set(known) else function(*args, **kwargs)

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return _answer(known, function, args, kwargs) if _is_set(known) else await function(*args, **kwargs)

        return call_async if inspect.iscoroutinefunction(function) else call

    return decorate


def _is_set(name: str) -> bool:
    return any(one["function"] == name for one in _behaviors)


def _answer(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the next answer of the last behavior that matches the call; repeat the last answer once all are used.

    Raises:
      UiPathMockResponseGenerationError: no behavior matches the call, or the answer is an exception.
    """
    for number, one in reversed(list(enumerate(_behaviors))):
        if one["function"] == name and _fits(one.get("arguments"), args, kwargs):
            at = _answered.get(number, 0)
            _answered[number] = min(at + 1, len(one["then"]) - 1)
            answer = one["then"][at]
            value = _resolved(answer.get("value"))
            if answer["type"] == "raise":
                raised = value if isinstance(value, BaseException) else RuntimeError(str(value))
                raise UiPathMockResponseGenerationError(f"{name}: {raised}") from raised
            return _typed(function, value)
    raise UiPathMockResponseGenerationError(
        f"the test case simulates {name}, but not for these arguments: {args} {kwargs}"
    )


def _fits(wanted: dict[str, Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if wanted is None:
        return True
    by_position, by_name = wanted.get("args") or [], wanted.get("kwargs") or {}
    if len(by_position) != len(args) or by_name.keys() != kwargs.keys():
        return False
    pairs = [*zip(by_position, args, strict=True), *((by_name[key], kwargs[key]) for key in by_name)]
    return all(_is_any(one) or _resolved(one) == other for one, other in pairs)


def _is_any(wanted: Any) -> bool:
    """Return whether an expected argument is mockito's matcher for any value."""
    return isinstance(wanted, dict) and str(wanted.get("_target_")).rpartition(".")[2] in {"any", "any_", "ANY"}


def _resolved(value: Any) -> Any:
    """Replace each `{"_target_": "module.name", …}` in a value: call that name with the other keys as arguments."""
    if isinstance(value, list):
        return [_resolved(one) for one in value]
    if not isinstance(value, dict):
        return value
    more = {key: _resolved(one) for key, one in value.items() if key != "_target_"}
    if "_target_" not in value:
        return more
    module, _, name = str(value["_target_"]).rpartition(".")
    return getattr(importlib.import_module(module), name)(**more)


def _typed(function: Any, value: Any) -> Any:
    wanted = getattr(function, "__annotations__", {}).get("return")
    if wanted is None or isinstance(wanted, str):
        return value
    from pydantic import TypeAdapter

    return TypeAdapter(wanted).validate_python(value)
