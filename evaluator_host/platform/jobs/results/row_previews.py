"""Makes short forms of rows for lists, also from results of which only the beginning was read."""

import json
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, Final

from evaluator_host.platform.jobs.queue import StoredResult
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.types.outcome import EvaluationResult
from evaluator_host.types.results import JobRow

_FIELDS: Final = tuple(one.name for one in fields(EvaluationResult))
_TEXT: Final = 300
_TEXTS: Final = 2000  # maximum number of characters to show from the strings of one value, in total
_VALUES: Final = 100  # maximum number of values to show from a row's data, and of metrics from a result
_DEPTH: Final = 6
_LEFT_OUT: Final = "…"
_UNREAD: Final[dict[str, Json]] = {
    "value": None,
    "logs": {"stdout": "", "stderr": "", "truncated": True},
    "requests": [],
    "usage": None,
}
_CUT_OFF: Final[dict[str, Json]] = {
    "label": None,
    "reason": None,
    "value": None,
    "warnings": [],
    "native": [],
    "not_loaded": [],
    "logs": _UNREAD["logs"],
    "evaluator": None,
    "environment": None,
    "sandbox": None,
    "requests": [],
    "usage": None,
}
_NO_ERROR: Final[dict[str, Json]] = {
    "message": _LEFT_OUT,
    "type": None,
    "line": None,
    "column": None,
    "traceback": None,
    "hint": None,
    "fix": None,
}


def decode_result(one: StoredResult) -> dict[str, Any]:
    """Convert a result to a dict. If its JSON is truncated, use its complete fields and the result's other columns."""
    try:
        found = decode_json(one.result.encode())
    except InvalidJson:
        error = None if one.error_code is None else {**_NO_ERROR, "code": one.error_code}
        columns = {"status": one.status, "score": one.score, "passed": one.passed, "error": error}
        timing = {"timing_ms": {"queue": 0.0, "environment": 0.0, "load": 0.0, "run": one.run_ms, "total": one.run_ms}}
        metrics = {"metrics": decode_json(one.metrics.encode())}
        found = {**_CUT_OFF, **columns, **timing, **metrics, **_fields_before_cut(one.result)}
    return {name: found[name] for name in _FIELDS if name in found}


def _fields_before_cut(text: str) -> dict[str, Any]:
    decoder, found, at = json.JSONDecoder(), {}, 1
    with suppress(ValueError, IndexError):
        while True:
            name, at = decoder.raw_decode(text, at)
            value, at = decoder.raw_decode(text, at + 1)
            if text[at] == ",":  # only a comma shows that a value is complete: a number may continue after the cut
                found[name] = value
            at += 1
    return found


def row_preview(row: JobRow) -> JobRow:
    """Return a short form of a row: without trace, returned value, logs and traceback, with long values truncated."""
    data = {name: value for name, value in row.row.items() if name != "trace"}
    result = {**row.result, **_UNREAD}
    for name in ("label", "reason"):
        result[name] = _cut(result[name])
    if result["error"]:
        error = result["error"]
        short = {"message": _cut(error["message"]), "traceback": None, "hint": _cut(error["hint"]), "fix": None}
        result["error"] = {**error, **short}
    result["metrics"] = dict(list(result["metrics"].items())[:_VALUES])
    result["warnings"] = result["native"] = result["not_loaded"] = []
    return replace(row, row=_Cutter().cut(data), output=_Cutter().cut(row.output), result=result, request=None)


def _cut(text: str | None, most: int = _TEXT) -> str | None:
    return text if text is None or len(text) <= most else text[:most] + _LEFT_OUT


class _Cutter:
    """Shortens one value: keeps only the first `_VALUES` of the values that it contains."""

    def __init__(self) -> None:
        self._left = _VALUES
        self._characters = _TEXTS

    def cut(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if isinstance(value, str):
            return self._text(value)
        if not isinstance(value, dict | list) or not value:
            return value if not isinstance(value, int) or abs(value) < 1 << 64 else _cut(str(value))
        if depth == _DEPTH:
            return _LEFT_OUT
        if isinstance(value, list):
            return [self.cut(one, depth + 1) for one in value[: max(1, self._left)] if self._left > 0]
        return {self._text(name): self.cut(one, depth + 1) for name, one in value.items() if self._left > 0}

    def _text(self, text: str) -> str | None:
        kept = _cut(text, min(_TEXT, self._characters))
        self._characters -= min(_TEXT, self._characters, len(text))
        return kept
