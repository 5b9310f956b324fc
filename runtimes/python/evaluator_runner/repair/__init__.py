"""Restores the indentation of Python code that has lost all indentation.

This works if only one block structure follows the rules (`structure.py`).

A search is bounded by the size of the text, the number of statements that it places, and the size of its result.
"""

from __future__ import annotations

from evaluator_runner.repair.layout import diff_of, indented
from evaluator_runner.repair.statements import MOST_CHARS, NotRead, read_statements
from evaluator_runner.repair.structure import Structures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.repair.statements import Statement

_MOST_FIXED_CHARS = 2 * MOST_CHARS


def find_fix(code: str) -> dict[str, Any] | None:
    """Return the code with its indentation restored. Return None if a line is indented, or if no structure parses.

    Returns:
      `{"code", "diff", "unique": true, "candidates": []}`, or `{"code": null, "diff": null, "unique": false,
      "candidates": [{"code", "diff"}, …]}` with one or two of the possible codes.
    """
    try:
        units = read_statements(code)
    except NotRead:
        return None
    strict = Structures(units)
    found = _texts(code, units, strict)
    if len(found) == 1 and strict.complete:
        return {**found[0], "unique": True, "candidates": []}
    if not found:
        found = _texts(code, units, Structures(units, strict=False))
    return {"code": None, "diff": None, "unique": False, "candidates": found} if found else None


def _texts(code: str, units: list[Statement], structures: Structures) -> list[dict[str, str]]:
    made = [indented(code, units, depths) for depths in structures.found]
    return [{"code": text, "diff": diff_of(code, text)} for text in made if _compiles(text)]


def _compiles(code: str) -> bool:
    if len(code) > _MOST_FIXED_CHARS:
        return False
    try:
        compile(code, "evaluator.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
