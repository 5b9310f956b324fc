"""Runs model judges (dialect `judge`): the code is a form (`FORM`) that tells a model how to judge each row.

The sandbox has no network. So a row returns its requests to the model as its value, and the host runs the row again
with the model's answers.
"""

from __future__ import annotations

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.entry import Entry
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "judge"
WORDS = ()
PREBOUND = False


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Return None, because a judge is never recognised by its code: its contract must be declared."""
    return None


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that judges a row by the form.

    Raises:
      Failure: the code is not a form, or an example lacks a column that the prompt reads.
    """
    from evaluator_judge import Judge, facts

    form = namespace.get("FORM")
    if not isinstance(form, dict):
        raise Failure("entry_not_found", "the code has no FORM", hint="give the form as `judge`, without code")
    judge = Judge(form)
    try:
        judge.require_examples()
    except ValueError as error:
        hint = "give each example in `examples` all `inputs` that the prompt reads"
        raise Failure("load_error", str(error), hint=hint) from None
    found = Entry("judge", judge.score)
    found.reason = "declared"
    found.facts = facts(form["prompt"])
    return found
