"""Runs HoneyHive evaluators (dialect `honeyhive`): functions for experiments, or functions that get one event."""

from __future__ import annotations

from evaluator_runner import candidates, dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Function, Outline

CONTRACT = "honeyhive"
WORDS = ("honeyhive", "ground_truth", "ground_truths", "event", "outputs")
PREBOUND = False
_ORDER = ("outputs", "inputs")
_TRUTHS = ("ground_truth", "ground_truths")
_EVENT = "event"


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function by its decorator, or by the parameters of HoneyHive's experiments or editor.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    decorated = outline.decorated_by("honeyhive", "evaluator", "aevaluator", of=name)
    if decorated is not None:
        return dialects.DECORATED, f"`{decorated.name}` is decorated with honeyhive's `evaluator`"
    names = [one.name for one in outline.functions.values() if name in {None, one.name} and _fits(one)]
    names = candidates.meant(outline, names)
    if len(names) != 1 or (outline.has_own_entry and names[0] != "evaluate"):
        return None
    return dialects.PARAMETERS, f"`{names[0]}` has the parameters {', '.join(outline.functions[names[0]].parameters)}"


def _fits(function: Function) -> bool:
    names = tuple(function.parameters)
    return names in ((_EVENT,), _ORDER) or (names[:2] == _ORDER and len(names) == 3 and names[2] in _TRUTHS)


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the function with the event, or with the outputs, the inputs and any ground truth.

    Raises:
      Failure: there is no such function, or there are several.
    """
    found = entry.find_function(namespace, name or _only(namespace))
    names = found.signature.names if found.signature is not None else []
    two = names == list(_ORDER)
    found.bind = _event if names == [_EVENT] else _first_two if two else _positional
    found.places = (*_ORDER, next((one for one in names if one in _TRUTHS), _TRUTHS[0]))
    shown = getattr(found.call, "name", None) or found.name
    found.convert = lambda value: {"eval_name": shown, "value": value}
    return found


def _only(namespace: dict[str, Any]) -> str:
    own = [name for name, one in namespace.items() if entry.is_function(one) and _is_own(one)]
    marked = [name for name in own if getattr(namespace[name], "is_evaluator", False)]
    outline = candidates.outline_of(namespace)
    fitting = [name for name in own if name in outline.functions and _fits(outline.functions[name])]
    possible = marked or fitting or own
    return candidates.the_only(namespace, possible, "evaluators") if possible else "evaluate"


def _is_own(value: Any) -> bool:
    return getattr(value, "__module__", None) == "evaluator"


def _positional(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    row = args[0]
    truth = row.get("ground_truth")
    return [row.get("outputs"), row.get("inputs") or {}, *([] if truth is None else [truth])], {}


def _first_two(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    given, named = _positional(args)
    return given[:2], named


def _event(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    row = args[0]
    event = {"event_type": "model", "metadata": {}, "metrics": {}, "config": {}, **row}
    event.setdefault("feedback", {"ground_truth": event.pop("ground_truth", None)})
    return [event], {}
