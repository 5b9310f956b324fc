"""Implements dialect `vertex`: a function `evaluate(instance)`."""

from __future__ import annotations

from evaluator_runner import dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "vertex"
PREBOUND = False
_FIELDS = ("prompt", "response", "reference")


class _Content(dict):  # type: ignore[type-arg]
    """A text as the service gives it, `["text"]`, and as the SDK does in one's own process, `["parts"][0]["text"]`."""

    def __missing__(self, key: str) -> Any:
        if key == "text" and "parts" in self:
            return self["parts"][0]["text"]
        if key == "parts" and "text" in self:
            return [{"text": self["text"]}]
        if key == "response" and ("text" in self or "parts" in self):
            return self
        raise KeyError(key)


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Return how `evaluate` shows that it takes an instance: by its one parameter."""
    found = outline.functions.get(name or "evaluate")
    if found is None or found.parameters != ["instance"] or found.variadic:
        return None
    return dialects.PARAMETERS, f"`{found.name}` has one parameter, `instance`"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return the function; prompt, response and reference of its instance can be read in both ways."""
    found = entry.find_function(namespace, name or "evaluate", ("instance",))
    found.bind = _bind
    return found


def _bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    row = args[0]
    contents = {key: _Content(row[key]) for key in _FIELDS if isinstance(row.get(key), dict)}
    return [{**row, **contents}], {}
