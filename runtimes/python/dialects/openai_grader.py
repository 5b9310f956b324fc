"""Runs OpenAI's Python graders (dialect `openai-grader`): a function `grade(sample, item)` that returns a number."""

from __future__ import annotations

from evaluator_runner import candidates, dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.roles import says_what_it_is_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "openai-grader"
WORDS = ("grade",)
PREBOUND = False
_NAME = "grade"
_PARAMETERS = ("sample", "item")


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function `grade` with two parameters.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    found = outline.functions.get(_NAME)
    if found is None or name not in (None, _NAME) or found.positional != len(_PARAMETERS) or found.variadic:
        return None
    if name is None and outline.has_own_entry:
        return None
    if says_what_it_is_given(found):
        return None
    if name is None and found.parameters != [*_PARAMETERS] and _NAME in candidates.helpers(outline):
        return None
    return dialects.NAMED, f"function {_NAME} with 2 parameters"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the grader with the sample and the item."""
    found = entry.find_function(namespace, name or _NAME, _PARAMETERS)
    found.bind = _bind
    return found


def _bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    return [args[0].get("sample"), args[0].get("item")], {}
