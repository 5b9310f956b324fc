"""Runs evaluators of dialect `evaluate`: a function `evaluate` with three parameters."""

from __future__ import annotations

from evaluator_runner import entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

CONTRACT = "evaluate"
PREBOUND = False


def applies(namespace: dict[str, Any], name: str | None) -> bool:
    """Return whether function `name` (by default `evaluate`) takes the three arguments of this dialect."""
    return entry.evaluate_contract(namespace, name) == CONTRACT


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls `evaluate`, or the function `name`."""
    return entry.find_function(namespace, name or "evaluate", entry.EVALUATE)


def is_plain(compiled: CodeType) -> bool:
    """Return whether the code defines `evaluate` with three parameters: then its contract is known before it runs."""
    functions = [c for c in compiled.co_consts if isinstance(c, type(compiled)) and c.co_name == "evaluate"]
    return bool(functions) and functions[-1].co_argcount == 3
