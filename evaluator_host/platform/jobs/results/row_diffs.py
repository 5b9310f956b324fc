"""Compares a row's outputs and results in two jobs."""

import difflib
import json
from typing import Final

from evaluator_host.types.evaluator import Json
from evaluator_host.types.results import JobRowDetail, RowDiff

_DIFF_CHARS: Final = 20_000
_DIFF_LINES: Final = 400


def row_diff(before: JobRowDetail, after: JobRowDetail, labels: tuple[str, str]) -> RowDiff:
    rows = (before, after)
    outputs = _unified(*(_lines((row.given or {}).get("outputs")) for row in rows))
    results = _unified(*(_result_lines(row, label) for row, label in zip(rows, labels, strict=True)))
    return RowDiff(before.index, *labels, outputs, results)


def _unified(before: list[str], after: list[str]) -> str:
    return "\n".join(difflib.unified_diff(before, after, "before", "after", lineterm=""))


def _lines(value: Json) -> list[str]:
    """Split a string, or another value's JSON, into lines: at most 400 lines with 20,000 characters in total."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return text[:_DIFF_CHARS].splitlines()[:_DIFF_LINES]


def _result_lines(row: JobRowDetail, label: str) -> list[str]:
    found = next((one.result for one in row.results if one.evaluator == label), {})
    said = {**found, "error": (found.get("error") or {}).get("message")}
    named = ((name, said.get(name)) for name in ("score", "label", "reason", "error"))
    return [line for name, value in named if value is not None for line in _lines(f"{name}: {value}")]
