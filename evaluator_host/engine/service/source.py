"""Cleans pasted code: removes what web pages, chats and editors add, without moving lines and columns.

Lines are never added or dropped (a removed line becomes blank), and characters are removed only at the start and end of
a line. So to find a position in the user's code, it is enough to add a number to the column. Nothing here parses the
code. The rules look at whole lines. Each rule applies only to text that cannot be a program unless something is
removed.
"""

import os.path
import re
from dataclasses import dataclass, replace
from typing import Final

from evaluator_host.types.evaluator import Language
from evaluator_host.types.outcome import EvaluationError, Note

_INVISIBLE: Final = "\u200b\u200c\u200d\u2060\ufeff"  # zero-width characters that web pages put into code
_NO_BREAK: Final = "\u00a0\u202f\u2007"  # spaces that no Python parser accepts as a space
_BLANKS: Final = f" \t{_NO_BREAK}{_INVISIBLE}"

_SUSPECT: Final = re.compile(f"[\ud800-\udfff{_NO_BREAK}{_INVISIBLE}]")
_INDENT: Final = re.compile(f"[{_BLANKS}]*")
_DROPPED: Final = {ord(c): None for c in _INVISIBLE} | {ord(c): " " for c in _NO_BREAK}

# Repetitions that could match the same text are possessive, so that a megabyte of tildes or blanks takes one pass.
_FENCE: Final = re.compile(r"([ \t]*+)(`{3,}+|~{3,}+)([^`]*+)$")
_DEFINITION: Final = re.compile(
    r"""^[ \t]*(?:(?:export[ ]+)?(?:default[ ]+)?(?:async[ ]+)?(?:def|function|class)\b[ *]*+\w*+[ ]*+[(:{]
      |(?:export[ ]+)?(?:const|let|var)[ ]+[\w{\[]
      |(?:module[.]|globalThis[.])?(?:exports?|evaluate|main)\b[^\n]*=
      |export\b)
      |[;{]$
      |\"{3}|'{3}""",
    re.VERBOSE | re.MULTILINE,
)
_NUMBERED: Final = re.compile(r"[ \t]*(\d+)")
_SEPARATOR: Final = re.compile(r"[ \t]*[|:.)\u2502]")
_ONE_LINER: Final = re.compile(
    r"[ \t]*+1[ \t]*+[|:.)]?+[ \t]*+(?:async|def|function|const|let|var|export|import|evaluate|main)\b"
)

_Lines = list[str]


@dataclass(frozen=True, slots=True)
class CleanSource:
    """A cleaned program, and what is needed to convert its positions to positions in the pasted text."""

    code: str  # the program: it has as many lines as the pasted text, and each ends in a line feed
    notes: tuple[Note, ...] = ()  # notes on removed text that users should know about
    removed: tuple[int, ...] = ()  # how many characters were removed from the start of each line; empty if none were

    def to_user(self, line: int | None, column: int | None) -> tuple[int | None, int | None]:
        """Convert a position in `code` to its position in the pasted text; lines and columns count from 1."""
        if line is None or column is None or not 0 < line <= len(self.removed):
            return line, column
        return line, column + self.removed[line - 1]

    def locate(self, error: EvaluationError) -> EvaluationError:
        """Return an error with its position in the pasted text."""
        line, column = self.to_user(error.line, error.column)
        return error if column == error.column else replace(error, line=line, column=column)


def clean(code: str, language: Language) -> CleanSource:
    """Return the program in a pasted text.

    This removes a byte order mark, no-break and zero-width characters at the ends of lines, a Markdown fence (with text
    before or after it), line numbers, a shebang, and for Python an indentation that all lines have. All line ends
    become line feeds.
    """
    if _is_clean(code):
        return CleanSource(code)
    text = code.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    user = text.split("\n")
    notes: list[Note] = []
    lines = [_without_web_blanks(line) for line in user]
    lines = _without_fence(lines, notes)
    lines = _without_gutter(lines, notes)
    lines = [_without_web_blanks(line) for line in lines]
    lines = _without_shebang(lines)
    # other languages ignore indentation, and their blanks may belong to a template literal
    if language is Language.PYTHON:
        lines = _dedented(lines)
    removed = tuple(_removed(before, after) for before, after in zip(user, lines, strict=True))
    return CleanSource("\n".join(lines), tuple(notes), removed if any(removed) else ())


def _is_clean(code: str) -> bool:
    """Return whether the code contains nothing to which a rule could apply."""
    start = len(code) - len(code.lstrip())
    starts_odd = code[start : start + 1].isdigit() or code.startswith("#!", start) or code[:start].endswith((" ", "\t"))
    if starts_odd or "\r" in code or "```" in code or "~~~" in code:
        return False
    return code.isascii() or _SUSPECT.search(code) is None


def _removed(before: str, after: str) -> int:
    """Return how many characters were removed at the start of a line. Only the ends of the line may differ."""
    if before == after or not after.strip(_BLANKS):
        return 0
    return len(before.rstrip(_BLANKS)) - len(after.rstrip(_BLANKS))


def _without_web_blanks(line: str) -> str:
    if line.isascii():
        return line
    end = line.rstrip(_BLANKS)
    if not line[len(end) :].isascii():
        line = end  # keep blanks at the end of a line, because they may belong to a string
    indent = _INDENT.match(line)
    if indent is None or indent[0].isascii():
        return line
    return indent[0].translate(_DROPPED) + line[indent.end() :]


def _without_fence(lines: _Lines, notes: list[Note]) -> _Lines:
    marked = [(i, line) for i, line in enumerate(lines) if "```" in line or "~~~" in line]
    fences = [(i, match) for i, line in marked if (match := _FENCE.match(line))]
    span = _fenced(lines, fences) if fences else None
    if span is None:
        return lines
    start, end = span
    outside = [line for line in (*lines[:start], *lines[end + 1 :]) if line.strip()]
    what = "a Markdown fence and the text around it were" if outside else "a Markdown fence was"
    notes.append(Note("source_cleaned", f"{what} removed from the code"))
    inside = range(start + 1, end)
    return [line if i in inside else "" for i, line in enumerate(lines)]


def _fenced(lines: _Lines, fences: list[tuple[int, re.Match[str]]]) -> tuple[int, int] | None:
    """Return the line numbers of the opening and the closing fence, or None if the text is not one fenced block.

    There may be prose before and after the block.
    """
    filled = [i for i, line in enumerate(lines) if line.strip()]
    start, opening = fences[0]
    if len(fences) == 1 and start == filled[-1] and not opening[3].strip() and start != filled[0]:
        return -1, start  # the user copied the block without its opening fence
    end = next((i for i, match in fences[1:] if _closes(match, opening)), None)
    if end is None:
        last, closing = fences[-1]
        bare = len(fences) > 1 and last == filled[-1] and not closing[3].strip()
        return (start, last if bare else len(lines)) if start == filled[0] else None
    if start == filled[0] and end == filled[-1]:
        return start, end
    outside = "\n".join((*lines[:start], *lines[end + 1 :]))
    more = any(i > end for i, _ in fences)
    return None if more or _DEFINITION.search(outside) or not "".join(lines[start + 1 : end]).strip() else (start, end)


def _closes(match: re.Match[str], opening: re.Match[str]) -> bool:
    """Return whether a fence closes the fence `opening`.

    A fence with a different indentation is part of a string or comment in the code.
    """
    return match[1] == opening[1] and match[2].startswith(opening[2]) and not match[3].strip()


def _without_gutter(lines: _Lines, notes: list[Note]) -> _Lines:
    numbered = _numbered(lines)
    if numbered is None:
        return lines
    notes.append(Note("source_cleaned", "line numbers were removed from the start of every line"))
    rest = {i: lines[i][end:] for i, end in numbered.items()}
    filled = [text for text in rest.values() if text.strip()]
    if all(_SEPARATOR.match(text) for text in filled):
        rest = {i: _SEPARATOR.sub("", text, count=1) for i, text in rest.items()}
        filled = [text for text in rest.values() if text.strip()]
    # if every number is followed by a blank, the blanks belong to the numbering; otherwise they are indentation
    for blank in (" ", "\t"):
        if all(text.startswith(blank) for text in filled):
            rest = {i: text[1:] if text.startswith(blank) else text for i, text in rest.items()}
            break
    return [rest.get(i, line) for i, line in enumerate(lines)]


def _numbered(lines: _Lines) -> dict[int, int] | None:
    """If the lines are numbered 1, 2, 3, …, return where the number ends in each non-blank line, by line index.

    Otherwise return None.
    """
    ends: dict[int, int] = {}
    expected, skipped = 1, 0
    for i, line in enumerate(lines):
        if not line.strip():
            skipped += 1
            continue
        match = _NUMBERED.match(line)
        number = next((n for n in (expected, expected + skipped) if match and match[1].startswith(str(n))), None)
        if match is None or number is None or (not ends and number != 1):
            return None
        ends[i] = match.start(1) + len(str(number))
        expected, skipped = number + 1, 0
    if len(ends) == 1 and not any(_ONE_LINER.match(lines[i]) for i in ends):
        return None
    has_code = any(re.search(r"[A-Za-z_$]", lines[i][end:]) for i, end in ends.items())
    return ends if has_code else None


def _without_shebang(lines: _Lines) -> _Lines:
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None or not lines[first].startswith("#!"):
        return lines
    return [*lines[:first], "", *lines[first + 1 :]]


def _dedented(lines: _Lines) -> _Lines:
    filled = [line for line in lines if line.strip()]
    if not filled or filled[0][:1] not in " \t":
        return lines
    indent = os.path.commonprefix([line[: len(line) - len(line.lstrip(" \t"))] for line in filled])  # noqa: RUF071 - no paths
    return [line[len(indent) :] if line.startswith(indent) else line.lstrip(" \t") for line in lines]
