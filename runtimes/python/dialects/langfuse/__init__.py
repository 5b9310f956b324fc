"""Runs Langfuse evaluators (dialect `langfuse`): a function `evaluate(ctx)` that returns named scores."""

from __future__ import annotations

from evaluator_runner import dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "langfuse"
WORDS = ("ctx", "context", "observation", "EvaluationContext")
PREBOUND = False
_NAMES = {"ctx", "context"}
_GIVEN = ("EvaluationContext", "EvaluationResult", "Score", "ToolCall")
_CAMEL = {"data_type": "dataType", "config_id": "configId"}


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise `evaluate` if its only parameter has the name or type of a context, or is used like a context.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    found = outline.functions.get(name or "evaluate")
    if found is None or len(found.parameters) != 1 or found.variadic:
        return None
    parameter, annotation = found.parameters[0], found.annotations[0]
    if parameter in _NAMES:
        return dialects.PARAMETERS, f"`{found.name}` has one parameter, `{parameter}`"
    if annotation.rpartition(".")[2] == "EvaluationContext":
        return dialects.PARAMETERS, f"`{found.name}` has one parameter of type EvaluationContext"
    if found.reads("observation"):
        return dialects.PARAMETERS, f"`{found.name}` has one parameter and reads `.observation`"
    return None


def names() -> dict[str, Any]:
    """Return the classes that code may use without an import, by name."""
    from evaluator_runner.dialects.langfuse import types

    return {name: getattr(types, name) for name in _GIVEN}


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls `evaluate` with an `EvaluationContext`, and converts the result to plain values."""
    found = entry.find_function(namespace, name or "evaluate", ("ctx",))
    found.bind = _bind
    found.convert = _plain
    return found


def _bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    from evaluator_runner.dialects.langfuse import types

    return [types.context(args[0])], {}


def _plain(value: Any) -> Any:
    """Convert a result to plain values: fields of scores get their JSON names, other objects become strings."""
    value = _values(value)
    if isinstance(value, dict) and isinstance(value.get("scores"), list):
        value["scores"] = [_renamed(one) if isinstance(one, dict) else one for one in value["scores"]]
    return value


def _values(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_values(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    fields = getattr(type(value), "__dataclass_fields__", None)
    if isinstance(fields, dict):
        return {name: _values(getattr(value, name)) for name in fields}
    return str(value)


def _renamed(score: dict[str, Any]) -> dict[str, Any]:
    return {_CAMEL.get(name, name): value for name, value in score.items() if value is not None}
