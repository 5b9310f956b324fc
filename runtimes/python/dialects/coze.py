"""Runs Coze Loop evaluators (dialect `coze`): a function `exec_evaluation(turn)` that returns an `EvalOutput`."""

from __future__ import annotations

from evaluator_runner import dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "coze"
WORDS = ("exec_evaluation",)
PREBOUND = False
MODULES = {"json": "json", "sys": "sys", "asyncio": "asyncio"}
_NAME = "exec_evaluation"


class EvalOutput:
    """The return value of `exec_evaluation`."""

    def __init__(self, score: Any, reason: Any) -> None:
        self.score = score
        self.reason = reason


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise Coze Loop's function `exec_evaluation`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    return (dialects.NAMED, f"function {_NAME}") if _NAME in outline.functions and name in (None, _NAME) else None


def names() -> dict[str, Any]:
    """Return the objects that code may use without an import, by name."""
    from dataclasses import dataclass

    return {"EvalOutput": EvalOutput, "dataclass": dataclass}


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls `exec_evaluation` and converts the result to `{"score", "reason"}`."""
    found = entry.find_function(namespace, name or _NAME, ("turn",))
    found.convert = _plain
    return found


def _plain(value: Any) -> Any:
    if not hasattr(value, "score") or not hasattr(value, "reason"):
        return {"not_an_output": type(value).__name__}
    return {"score": value.score, "reason": value.reason}
