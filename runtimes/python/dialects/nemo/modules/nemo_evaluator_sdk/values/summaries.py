"""Formats results as text: tables, one-line headers, full errors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from .aggregates import AggregateScoreBase
    from .results import RowScore

Record = dict[str, Any]
_CELL_CHARS = 40


def plain(value: Any) -> Any:
    """Convert the pydantic models in a value to plain objects."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def flatten(prefix: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Yield each leaf of nested objects with its dotted name."""
    if not isinstance(value, dict):
        yield prefix, value
        return
    for key, item in value.items():
        yield from flatten(f"{prefix}.{key}" if prefix else str(key), item)


def table(records: list[Record]) -> str:
    """Format records as a text table; columns are in the order in which they first appear."""
    if not records:
        return "(no rows)"
    columns = list(dict.fromkeys(name for record in records for name in record))
    cells = [[_cell(record.get(name, "")) for name in columns] for record in records]
    widths = [
        max(len(name), *(len(row[at]) for row in cells))  # a column's name is never truncated
        for at, name in enumerate(columns)
    ]
    lines = (
        " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in (columns, *cells)
    )
    head, *body = lines
    return "\n".join([head, "-+-".join("-" * width for width in widths), *body])


def _cell(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _CELL_CHARS else f"{text[: _CELL_CHARS - 3]}..."


def header(kind: str, rows: list[RowScore], scores: int) -> str:
    """Return a line such as `EvaluationResult(rows=4, aggregate_scores=2, ok=3, error=1)`."""
    failed = sum(bool(row.error) for row in rows)
    counts = [("rows", len(rows)), ("aggregate_scores", scores)]
    counts += [(name, count) for name, count in (("ok", len(rows) - failed), ("error", failed)) if count]
    return f"{kind}({', '.join(f'{name}={count}' for name, count in counts)})"


def score_record(score: AggregateScoreBase) -> Record:
    """Return the statistics of a score that a summary shows."""
    names = ("name", "count", "nan_count", "mean", "min", "max", "score_type")
    record = {name: getattr(score, name) for name in names}
    percentiles, mode = getattr(score, "percentiles", None), getattr(score, "mode_category", None)
    record |= {} if percentiles is None else {"p50": percentiles.p50}
    return record if mode is None else {**record, "mode_category": mode}


def preview_record(row: RowScore, index: int) -> Record:
    """Return the row's columns that a summary shows before the outputs: only scalars, and no raw responses."""
    sample = {name: value for name, value in plain(row.sample).items() if name != "response"}
    leaves = [*flatten("item", plain(row.item)), *flatten("sample", sample)]
    record: Record = {"row_index": row.position(index), "status": row.status}
    record.update((name, value) for name, value in leaves if value is None or isinstance(value, str | int | float))
    if row.error:
        record["error"] = row.error
    return record


def row_record(row: RowScore, index: int) -> Record:
    """Convert a row to a flat record, without its outputs."""
    record: Record = {"row_index": row.position(index), "status": row.status}
    record.update(flatten("item", plain(row.item)))
    record.update(flatten("sample", plain(row.sample)))
    if row.error:
        record["error"] = row.error
    return record


def aggregate_record(score: AggregateScoreBase) -> Record:
    """Convert all statistics of a score to a flat record, in which the histogram is JSON text."""
    record: Record = {}
    for name, value in score.model_dump(mode="json").items():
        if name == "histogram" and value is not None:
            record[name] = json.dumps(value, sort_keys=True)
        else:
            record.update(flatten(name, value))
    return record


def diagnostics_record(row: RowScore) -> Record:
    """Return a row's diagnostics as JSON text for each metric, under the name `diagnostics.<metric>`."""
    found = (row.metric_diagnostics or {}).items()
    return {f"diagnostics.{key}": json.dumps(plain(items), sort_keys=True) for key, items in found}


def error_details(rows: list[RowScore], *, at_most: int, labelled: bool) -> list[str]:
    """Format the errors of the first `at_most` failed rows as lines; if `labelled`, with the names of metrics."""
    failed = [(index, row) for index, row in enumerate(rows) if row.error]
    if not failed:
        return []
    shown = failed[: max(0, at_most)]
    lines = ["", f"Error details ({len(shown)} of {len(failed)} failed rows)"]
    for index, row in shown:
        errors = (row.metric_errors or {}).items()
        lines += ["", f"[row {row.position(index)}]"]
        lines += [f"{key}: {message}" if labelled else message for key, message in errors]
        lines += [f"{name}: {text}" for name, text in diagnostics_record(row).items()]
    if len(shown) < len(failed):
        lines += ["", f"... {len(failed) - len(shown)} more failed rows omitted"]
    return lines
