"""Runs Maxim evaluators (dialect `maxim`): a function `validate` that gets input, output, context… by name."""

from __future__ import annotations

from evaluator_runner import binding, dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "maxim"
WORDS = ("validate",)
PREBOUND = False
_ENTRY = "validate"
_OWN = {
    "input", "output", "expected_output", "expectedOutput", "context", "contextToEvaluate", "context_to_evaluate",
}  # fmt: skip


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function `validate` with a parameter for the output, if the code has no other entry.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    found = outline.functions.get(_ENTRY)
    if found is None or name not in {None, _ENTRY} or (name is None and outline.has_own_entry):
        return None
    if "output" not in found.parameters or not set(found.required) <= _OWN:
        return None
    return dialects.SHAPED, f"function `{_ENTRY}` with the parameters {', '.join(found.parameters)}"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls `validate`. Each parameter gets the row's field with the parameter's name."""
    found = entry.find_function(namespace, name or _ENTRY)
    found.bind = lambda args: binding.bind(found, args[0])
    return found
