"""Formats exceptions for the author, with lines and columns; frames of the runner are left out.

The `traceback` module would take 20 ms at the first exception and would use objects that user code may have replaced.
"""

from __future__ import annotations

from itertools import islice

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

FILENAME = "evaluator.py"
OTHERS: dict[str, list[str]] = {}
"""The lines of the modules that came with the evaluator, by path."""
_TEXT_CHARS = 4096
_TRACEBACK_CHARS = 16_000
_CHAIN = 10  # maximum number of exceptions in a chain to show
_REPEATS = 3  # maximum number of equal consecutive frames to show
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def name_of(raised: BaseException) -> str:
    """Return the name of an exception's type, as it appears in code."""
    kind = type(raised)
    module: object = kind.__module__  # user code can set `__module__` to any object
    name = kind.__qualname__
    if not isinstance(module, str) or module in {"builtins", "evaluator", "evaluator_runner.failures"}:
        return str.__str__(name)[:200]
    return f"{module}.{name}"[:200]


def text_of(raised: BaseException) -> str:
    """Return `str(raised)`, or a substitute when `__str__` raises."""
    try:
        text = str.__str__(str(raised))
    except BaseException as error:  # noqa: BLE001 - a user's __str__ may raise anything
        text = f"<{type(error).__name__} in __str__>"
    return text if len(text) <= _TEXT_CHARS else text[:_TEXT_CHARS] + "…"


def position(raised: BaseException, lines: list[str]) -> tuple[int | None, int | None]:
    """Return the line and the column, counted from 1, of the evaluator's innermost frame; each may be None."""
    found: tuple[int | None, int | None] = None, None
    for file, _, line, start, _ in _frames(raised.__traceback__):
        if file == FILENAME:
            found = line, _characters(lines, line, start) + 1 if start is not None else None
    return found


def raising_frame(raised: BaseException, file: str) -> FrameType | None:
    """Return the frame that raised an exception, if the path of its file ends in `file`."""
    traceback = raised.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return (
        traceback.tb_frame if traceback is not None and traceback.tb_frame.f_code.co_filename.endswith(file) else None
    )


def render(raised: BaseException, lines: list[str]) -> str:
    """Format the traceback of an exception and of its causes and contexts."""
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = raised
    while current is not None and id(current) not in seen and len(seen) < _CHAIN:
        seen.add(id(current))
        parts.append(_render_one(current, lines))
        if current.__cause__ is not None:
            parts.append(_CAUSE)
            current = current.__cause__
        elif current.__context__ is not None and not current.__suppress_context__:
            parts.append(_CONTEXT)
            current = current.__context__
        else:
            break
    if parts and parts[-1] in {_CAUSE, _CONTEXT}:
        parts.pop()
    return _cut("".join(reversed(parts)))


def render_syntax(raised: SyntaxError, lines: list[str]) -> str:
    """Format a syntax error as the interpreter does."""
    line = raised.lineno or 0
    shown = f'  File "{FILENAME}", line {line}\n'
    source = _source(lines, line)
    if source:
        shown += f"    {source.strip()}\n"
        indent = len(source) - len(source.lstrip())
        if raised.offset and raised.offset > 0:
            shown += "    " + " " * max(0, raised.offset - 1 - indent) + "^\n"
    return _cut(f"{shown}{name_of(raised)}: {raised.msg}")


def _render_one(raised: BaseException, lines: list[str]) -> str:
    text = text_of(raised)
    last = f"{name_of(raised)}: {text}" if text else name_of(raised)
    notes = getattr(raised, "__notes__", None)
    if isinstance(notes, list):
        last += "".join([f"\n{str.__str__(note)}" for note in notes[:16] if isinstance(note, str)])
    frames = "".join(_render_frames(raised.__traceback__, lines))
    return f"Traceback (most recent call last):\n{frames}{last}\n" if frames else f"{last}\n"


def _render_frames(traceback: TracebackType | None, lines: list[str]) -> Iterator[str]:
    previous: tuple[str, str, int] | None = None
    repeated = 0
    for file, name, line, start, end in _frames(traceback):
        if (file, name, line) == previous:
            repeated += 1
            if repeated >= _REPEATS:
                continue
        else:
            yield _repetition(repeated)
            repeated = 0
        previous = (file, name, line)
        source = lines if file == FILENAME else OTHERS[file]
        yield f'  File "{file}", line {line}, in {name}\n' + _marked_source(source, line, start, end)
    yield _repetition(repeated)


def _repetition(repeated: int) -> str:
    more = repeated - _REPEATS + 1
    return f"  [Previous line repeated {more} more time{'' if more == 1 else 's'}]\n" if more > 0 else ""


def _frames(traceback: TracebackType | None) -> Iterator[tuple[str, str, int, int | None, int | None]]:
    """Yield the file, name, line and byte offsets of the expression for each user frame, the outermost first."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        file = code.co_filename
        if (file == FILENAME or file in OTHERS) and traceback.tb_lineno is not None:
            line, end_line, start, end = _position_in(iter(code.co_positions()), traceback.tb_lasti)
            if line != traceback.tb_lineno:
                start = end = None
            elif end_line != line:
                end = None
            yield file, code.co_name, traceback.tb_lineno, start, end
        traceback = traceback.tb_next


def _position_in(
    positions: Iterator[tuple[int | None, int | None, int | None, int | None]], instruction: int
) -> tuple[int | None, int | None, int | None, int | None]:
    if instruction < 0:
        return None, None, None, None
    return next(islice(positions, instruction // 2, None), (None, None, None, None))


def _source(lines: list[str], line: int) -> str:
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _characters(lines: list[str], line: int, offset: int) -> int:
    """Return the number of characters before a byte offset of a line."""
    return len(_source(lines, line).encode("utf-8", "replace")[:offset].decode("utf-8", "replace"))


def _marked_source(lines: list[str], line: int, start: int | None, end: int | None) -> str:
    source = _source(lines, line)
    stripped = source.strip()
    if not stripped:
        return ""
    shown = f"    {stripped[:400]}\n"
    if start is None or end is None:
        return shown
    indent = len(source) - len(source.lstrip())
    first, last = _characters(lines, line, start) - indent, _characters(lines, line, end) - indent
    if first < 0 or last > min(len(stripped), 400) or last - first >= len(stripped):
        return shown
    return f"{shown}    {' ' * first}{'^' * (last - first)}\n"


def _cut(text: str) -> str:
    if len(text) <= _TRACEBACK_CHARS:
        return text
    return text[: _TRACEBACK_CHARS // 4] + "\n  …\n" + text[-(_TRACEBACK_CHARS * 3 // 4) :]
