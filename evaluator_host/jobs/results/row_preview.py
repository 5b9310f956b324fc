"""Rows of a job cut down to what a table of them shows: a page of rows is small, however long they are."""

from dataclasses import replace
from typing import Any, Final

from evaluator_host.model.evaluator import Json
from evaluator_host.schemas.results import JobRow

_TEXT: Final = 300
_TEXTS: Final = 2000  # characters of all texts of a value together
_VALUES: Final = 100  # of data, and metrics of a result
_DEPTH: Final = 6
_LEFT_OUT: Final = "…"
_UNREAD: Final[dict[str, Json]] = {"value": None, "logs": {"stdout": "", "stderr": "", "truncated": True}}


def row_preview(row: JobRow) -> JobRow:
    """Return a row without its trace, the returned value, logs and traceback; long texts and great objects are cut."""
    data = {name: value for name, value in row.row.items() if name != "trace"}
    result = {**row.result, **_UNREAD}
    for name in ("label", "reason"):
        result[name] = _cut(result[name])
    if result["error"]:
        error = result["error"]
        result["error"] = {**error, "message": _cut(error["message"]), "traceback": None, "hint": _cut(error["hint"])}
    result["metrics"] = dict(list(result["metrics"].items())[:_VALUES])
    result["warnings"] = []
    return replace(row, row=_Cutter().cut(data), output=_Cutter().cut(row.output), result=result, request=None)


def _cut(text: str | None, most: int = _TEXT) -> str | None:
    return text if text is None or len(text) <= most else text[:most] + _LEFT_OUT


class _Cutter:
    """Cuts one value; what comes after the first `_VALUES` values in it is left out."""

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
