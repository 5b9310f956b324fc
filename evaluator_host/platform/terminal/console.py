"""Prints for the command line: results to standard output, everything else to standard error. Formats tables.

The output of evaluators is never interpreted as markup. The control characters in it are escaped, because they can
control a terminal, or change the order of the shown text.
"""

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from datetime import datetime
from shlex import quote
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.text import Text

from evaluator_host.types.json_values import encode_json
from evaluator_host.types.numbers import rounded

T = TypeVar("T")

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

out: Final = Console(markup=False, highlight=False, soft_wrap=True)
err: Final = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def buffer_streams() -> None:
    """Buffer stdout and stderr even if PYTHONUNBUFFERED is set. A signal could truncate unbuffered output."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and isinstance(stream.buffer, io.RawIOBase):
            raw = io.FileIO(stream.fileno(), "w", closefd=False)
            whole = io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True)
            setattr(sys, name, whole)


GIVEN_URL: ContextVar[str | None] = ContextVar("GIVEN_URL", default=None)
"""Address in the `--url` of the command that runs."""


def next_command(command: str) -> str:
    """Return a command to suggest to the user. If the running command has `--url`, the suggestion has it, too."""
    url = GIVEN_URL.get()
    return f"evaluator-host {command}" + ("" if url is None else f" --url {quote(url)}")


def plain(text: object) -> str:
    """Return text with its control characters escaped, so that it is safe to print to a terminal."""
    return _CONTROL.sub(lambda match: repr(match.group())[1:-1], str(text))


def printable(text: str) -> str:
    """Return text with a space for each character that cannot be printed: XML does not allow many of them."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def print_json(value: Any) -> None:
    """Print a value as indented JSON; dataclasses become objects."""
    _print_line(json.dumps(json.loads(encode_json(value)), indent=2, ensure_ascii=False))
    sys.stdout.flush()


def print_json_lines(values: Iterable[Any], *, prefix: str = "") -> None:
    """Print each value as JSON on a separate line, after `prefix`."""
    for value in values:
        _print_line(prefix + encode_json(value).decode("utf-8", "replace"))
    sys.stdout.flush()


def _print_line(text: str) -> None:
    """Print JSON with its control characters escaped: all are inside strings, where an escape means the same."""
    safe = _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
    sys.stdout.buffer.write(safe.encode("utf-8", "replace") + b"\n")


def print_found(found: T, as_text: Callable[[T], object], *, as_json: bool, none: str | None = None) -> None:
    """Print a value as JSON or as text. If it is empty, print the message `none` to standard error instead."""
    if as_json:
        print_json(found)
    elif none is not None and not found:
        err.print(none)
    else:
        out.print(as_text(found))


def facts(pairs: Iterable[tuple[str, object]]) -> Text:
    """Format a table of names and values, aligned but never wrapped, so that you can pipe and search its lines.

    Pairs with a value that is None or empty are left out. A value with several lines stays in its column.
    """
    shown = [(name, plain(value)) for name, value in pairs if value is not None and value != ""]
    width = max((len(name) for name, _ in shown), default=0)
    made = Text()
    for name, value in shown:
        first, *others = value.rstrip("\n").split("\n")
        made.append(f"{name:<{width}}  ", style="bold").append(first)
        for line in others:
            made.append(f"\n{'':<{width}}  {line}")
        made.append("\n")
    made.rstrip()
    return made


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Text:
    """Return a table with aligned columns; None is shown as a dash."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    made = Text()
    for number, row in enumerate(cells):
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        made.append(line, style="bold" if number == 0 else "")
        if number < len(cells) - 1:
            made.append("\n")
    return made


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return rounded(value)
    return plain(value).replace("\n", " ")


def format_time(moment: datetime) -> str:
    """Return a time in UTC, to the second."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")
