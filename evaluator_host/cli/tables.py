"""Tables of several columns, aligned by spaces, so that they survive a pipe."""

from collections.abc import Sequence

from rich.text import Text

from evaluator_host.cli.console import plain


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Text:
    """Return a table; None is shown as a dash."""
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
        return f"{value:.4g}"
    return plain(value).replace("\n", " ")
