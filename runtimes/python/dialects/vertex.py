"""Runs Vertex AI's custom metrics (dialect `vertex`): functions whose only parameter, `instance`, is a row's fields."""

from __future__ import annotations

from evaluator_runner import dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.outline import Outline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTRACT = "vertex"
WORDS = ("instance",)
PREBOUND = False
_FIELDS = ("prompt", "response", "reference")


class _Content(dict):  # type: ignore[type-arg]
    """A text that code can read both as in the service, `["text"]`, and as in the SDK, `["parts"][0]["text"]`."""

    def __missing__(self, key: str) -> Any:
        if key == "text" and "parts" in self:
            return self["parts"][0]["text"]
        if key == "parts" and "text" in self:
            return [{"text": self["text"]}]
        if key == "contents":
            return {"gemini_contents": [{"parts": self["parts"]}]}
        if key == "response" and ("text" in self or "parts" in self):
            return self
        raise KeyError(key)


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise `evaluate`, or another function, if its only parameter is named `instance`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    fitting = [one for one in outline.functions.values() if one.parameters == ["instance"] and not one.variadic]
    chosen = [one.name for one in fitting if one.name == (name or "evaluate")]
    if chosen:
        return dialects.PARAMETERS, f"`{chosen[0]}` has one parameter, `instance`"
    if name is not None or len(fitting) != 1 or outline.has_own_entry:
        return None
    return dialects.ANY_NAME, f"`{fitting[0].name}` has one parameter, `instance`"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the function: `evaluate` gets texts as `_Content`, any other function as strings."""
    if name is None and not entry.is_function(namespace.get("evaluate")):
        name = _only(namespace)
    found = entry.find_function(namespace, name or "evaluate", ("instance",))
    found.bind = _bind
    if found.name != "evaluate":  # a function with another name is a metric of the SDK
        found.bind = _bind_texts
        found.convert = lambda value: _named(value, found.name)
    return found


def _only(namespace: dict[str, Any]) -> str | None:
    outline = Outline(namespace["__loader__"].get_source("evaluator"))
    return next((one.name for one in outline.functions.values() if one.parameters == ["instance"]), None)


def _bind_texts(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    texts = {key: _Content(one)["text"] for key, one in args[0].items() if key in _FIELDS and isinstance(one, dict)}
    return [{**args[0], **texts}], {}


def _named(value: Any, name: str) -> Any:
    """Add a `score` to a dict: the value under the metric's name, or else the only number in the dict."""
    if not isinstance(value, dict) or "score" in value:
        return value
    numbers = [one for one in value.values() if isinstance(one, int | float)]
    score = value.get(name, numbers[0] if len(numbers) == 1 else None)
    return value if score is None else {"score": score, "explanation": value.get("explanation")}


def _bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    row = args[0]
    contents = {key: _Content(row[key]) for key in _FIELDS if isinstance(row.get(key), dict)}
    return [{**row, **contents}], {}
