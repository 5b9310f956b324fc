"""Runs Inspect scorers (dialect `inspect`): a function decorated with `scorer` that returns an async function.

This works with the package that the code has imported as `inspect_ai`: the light modules, or the real package.
"""

from __future__ import annotations

import sys

from evaluator_runner import dialects
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.candidates import meant_in, note_others
from evaluator_runner.coerce import type_name
from evaluator_runner.entry import JUDGES, Entry
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "inspect"
WORDS = ("inspect_ai",)
PREBOUND = False
IMPORTS = {
    "scorer": "inspect_ai.scorer:scorer",
    "Score": "inspect_ai.scorer:Score",
    "Scorer": "inspect_ai.scorer:Scorer",
    "Target": "inspect_ai.scorer:Target",
    "accuracy": "inspect_ai.scorer:accuracy",
    "mean": "inspect_ai.scorer:mean",
    "stderr": "inspect_ai.scorer:stderr",
    "std": "inspect_ai.scorer:std",
    "CORRECT": "inspect_ai.scorer:CORRECT",
    "INCORRECT": "inspect_ai.scorer:INCORRECT",
    "PARTIAL": "inspect_ai.scorer:PARTIAL",
    "NOANSWER": "inspect_ai.scorer:NOANSWER",
    "TaskState": "inspect_ai.solver:TaskState",
}
JUDGES[CONTRACT] = ("inspect_ai.scorer",)
_modules = sys.modules


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function that is decorated as a scorer of `inspect_ai`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    function = outline.decorated_by("inspect_ai", "scorer")
    if function is None or (name is not None and name not in outline.functions):
        return None
    return dialects.DECORATED, f"function `{name or function.name}`, decorated with inspect_ai's `scorer`"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that calls the scorer that a decorated function returns: the function `name`, or else the last.

    Raises:
      Failure: there is no such function, or it does not return an async function.
    """
    found = {key: one for key, one in namespace.items() if callable(one) and _scorer_name(one) is not None}
    if not found or (name is not None and name not in found):
        what = f"`{name}` is not a scorer" if name is not None else "the code defines no scorer"
        raise Failure(
            "entry_not_found",
            what + (f"; it defines {', '.join(list(found)[:10])}" if found else ""),
            hint="write `@scorer(metrics=[accuracy()])` above a function that returns `async def score(state, target)`",
        )
    names = meant_in(namespace, list(found))
    chosen = name or names[-1]
    try:
        score = found[chosen](**config)
    except TypeError as error:
        raise Failure(
            "load_error", f"{chosen}() did not return a scorer: {error}", hint="return `async def score(state, target)`"
        ) from None
    entry = Entry(chosen, score)
    reads = _Reader(str(_scorer_name(found[chosen])))
    entry.bind, entry.convert = reads.arguments, reads.plain
    if name is None:
        note_others(entry, "last", names)
    return entry


def _scorer_name(value: Any) -> str | None:
    """Return the scorer's name if the value is a scorer that the code defines. Otherwise return None."""
    name = getattr(value, "__scorer__", None)
    info = getattr(value, "__registry_info__", None)
    if name is None and getattr(info, "type", None) == "scorer" and getattr(value, "__module__", None) == "evaluator":
        name = info.name.rpartition("/")[2]
    return None if name is None else str(name)


class _Reader:
    """Makes a scorer's arguments from rows, and reads the scores that it returns."""

    def __init__(self, name: str) -> None:
        self._name = name

    def arguments(self, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the scorer's arguments: the state and the target."""
        row = args[0]
        target = "" if row.get("target") is None else row["target"]
        light = _modules.get("inspect_ai.scorer.scores")
        if light is not None:
            return [light.state_of(row), light.Target(target)], {}
        target = _modules["inspect_ai.scorer"].Target(target)
        return [_real_state(row, target), target], {}

    def plain(self, score: Any) -> Any:
        """Convert the score to plain values; NaN, which means that the sample is unscored, becomes None."""
        if score is None:
            return {"name": self._name, "value": None}
        if not hasattr(score, "value") or not hasattr(score, "explanation"):
            return {"returned": type_name(type(score))}
        value = score.value
        unscored = isinstance(value, float) and value != value
        return {
            "name": self._name,
            "value": None if unscored else value,
            "answer": score.answer,
            "explanation": score.explanation,
            "metadata": score.metadata,
        }


def _real_state(row: dict[str, Any], target: Any) -> Any:
    """Make the real package's task state from the row's sample and the model's answer."""
    from inspect_ai.model import (  # type: ignore[import-not-found]
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
        ModelName,
        ModelOutput,
    )
    from inspect_ai.solver import TaskState  # type: ignore[import-not-found]

    kinds = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant, "tool": ChatMessageTool}
    messages = [
        kinds.get(one.get("role"), ChatMessageUser)(content=one.get("content") or "")
        for one in row.get("messages") or ()
    ]
    given, completion = row.get("input"), row.get("completion")
    asked = given if isinstance(given, str) else str(given)
    return TaskState(
        model=ModelName("none/none"),
        sample_id=row.get("sample_id", 1),
        epoch=1,
        input=asked,
        messages=messages or [ChatMessageUser(content=asked)],
        target=target,
        choices=row.get("choices"),
        output=ModelOutput.from_content("none/none", completion if isinstance(completion, str) else str(completion)),
        metadata=row.get("metadata") or {},
    )
