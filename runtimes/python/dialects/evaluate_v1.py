"""Runs evaluators of the legacy dialect `evaluate-v1`: a function `evaluate` with four parameters."""

from __future__ import annotations

from evaluator_runner import entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.params import Params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTRACT = "evaluate-v1"
PREBOUND = True


def applies(namespace: dict[str, Any], name: str | None) -> bool:
    """Return whether function `name` (by default `evaluate`) takes four arguments.

    If the function can also take three, its parameters must have legacy names.
    """
    return entry.evaluate_contract(namespace, name) == CONTRACT


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls `evaluate` with its four arguments, or the function `name`."""
    found = entry.find_function(namespace, name or "evaluate", entry.EVALUATE_V1)
    found.bind = _bind
    return found


def _bind(args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    return [Params(args[0]), *args[1:]], {}
