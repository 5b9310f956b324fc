"""Writes code with the indentation of a block structure, and writes the diff from the code without indentation."""

from __future__ import annotations

import io
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from evaluator_runner.repair.statements import Statement

_INDENT = "    "
_CONTEXT = 3
_STRING_STARTS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
_STRING_ENDS = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}


def indented(code: str, units: list[Statement], depths: list[int]) -> str:
    """Return the code with each statement at its depth.

    Lines inside brackets are indented by the brackets around them. A comment has the depth of the statement after it.
    The lines of a docstring move with it. The lines of any other string stay unchanged, because they are its content.
    """
    lines = code.split("\n")
    within = _within(code)
    row = 0
    for unit, depth in zip(units, depths, strict=True):
        for at in range(row, unit.last + 1):
            inside = within.get(at, 0) if at > unit.first else 0
            if inside is None and not unit.is_docstring:
                continue
            if lines[at].strip():
                lines[at] = _INDENT * (depth + (inside or 0)) + lines[at]
        row = unit.last + 1
    return "\n".join(lines)


def _within(code: str) -> dict[int, int | None]:
    """Return for each line how many levels deeper than its statement it is indented, or None inside a string."""
    within: dict[int, int | None] = {}
    opened: list[int] = []  # the line of each bracket that is open
    strings: list[int] = []
    row, before = -1, -1
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        first, last = token.start[0] - 1, token.end[0] - 1
        if first != row and first not in within:
            closes = token.string in ("]", ")", "}")
            around = len(set(opened[:-1] if closes else opened))
            within[first] = 1 if not opened and before == first - 1 and row == before else around
        row = before = last
        if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
            before = -2
        if token.type in _STRING_STARTS:
            strings.append(first)
        elif token.type in _STRING_ENDS:
            within.update(dict.fromkeys(range(strings.pop() + 1, last + 1)))
        elif token.type == tokenize.STRING:
            within.update(dict.fromkeys(range(first + 1, last + 1)))
        elif token.type == tokenize.OP and token.string in ("[", "(", "{"):
            opened.append(first)
        elif token.type == tokenize.OP and token.string in ("]", ")", "}") and opened:
            opened.pop()
    return within


def diff_of(before: str, after: str) -> str:
    """Return the unified diff between two texts with the same number of lines."""
    old, new = before.split("\n"), after.split("\n")
    changed = [at for at, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
    parts = ["--- as pasted", "+++ fixed"]
    at = 0
    while at < len(changed):
        start = end = changed[at]
        while at < len(changed) and changed[at] <= end + 2 * _CONTEXT:
            end = changed[at]
            at += 1
        parts += _hunk(old, new, max(0, start - _CONTEXT), min(len(old), end + _CONTEXT + 1))
    return "\n".join(parts) + "\n"


def _hunk(old: list[str], new: list[str], start: int, end: int) -> list[str]:
    parts = [f"@@ -{start + 1},{end - start} +{start + 1},{end - start} @@"]
    while start < end:
        stop = start
        same = old[start] == new[start]
        while stop < end and (old[stop] == new[stop]) == same:
            stop += 1
        if same:
            parts += [f" {line}" for line in old[start:stop]]
        else:
            parts += [*(f"-{line}" for line in old[start:stop]), *(f"+{line}" for line in new[start:stop])]
        start = stop
    return parts
