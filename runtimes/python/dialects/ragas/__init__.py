"""Runs Ragas metrics (dialect `ragas`): functions that are decorated as discrete, numeric or ranking metrics.

This works with the package that the code has imported as `ragas`: the runner's light modules, or the real package.
"""

from __future__ import annotations

from evaluator_runner import dialects
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.candidates import meant_in, note_others
from evaluator_runner.entry import Entry
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Function, Outline

CONTRACT = "ragas"
WORDS = ("ragas", "_metric")
PREBOUND = False
IMPORTS = {
    "discrete_metric": "ragas.metrics:discrete_metric",
    "numeric_metric": "ragas.metrics:numeric_metric",
    "ranking_metric": "ragas.metrics:ranking_metric",
    "MetricResult": "ragas.metrics:MetricResult",
}
_DECORATORS = ("discrete_metric", "numeric_metric", "ranking_metric")


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function that is decorated as a metric of the package `ragas`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    function = outline.decorated_by("ragas", *_DECORATORS) or _not_imported(outline)
    if function is None or (name is not None and name not in outline.functions):
        return None
    return dialects.DECORATED, f"function `{name or function.name}`, a metric of ragas"


def _not_imported(outline: Outline) -> Function | None:
    """Return the first function whose metric decorator the code does not import, or None if there is none."""
    names = set(_DECORATORS) - outline.binds
    return next((one for one in outline.functions.values() if any(names & set(way) for way in one.decorators)), None)


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that calls the metric `name`, or else the first metric.

    Raises:
      Failure: the code defines no such metric.
    """
    found = {key: one for key, one in namespace.items() if _is_metric(one)}
    if not found or (name is not None and name not in found):
        what = f"`{name}` is not a metric" if name is not None else "the code defines no metric of ragas"
        raise Failure(
            "entry_not_found",
            what + (f"; it defines {', '.join(list(found)[:10])}" if found else ""),
            hint="decorate a function with `@numeric_metric(name=…, allowed_values=(0, 1))` from ragas.metrics",
        )
    names = meant_in(namespace, list(found))
    chosen = name or names[0]
    metric = found[chosen]
    entry = Entry(chosen, getattr(metric, "__wrapped__", None) or metric.score)
    reads = _Reader(metric, entry)
    entry.call, entry.bind, entry.convert = metric.score, reads.arguments, reads.plain
    if name is None:
        note_others(entry, "first", names)
    return entry


def _is_metric(value: Any) -> bool:
    own = not isinstance(value, type) and type(value).__module__.partition(".")[0] == "ragas"
    return own and callable(getattr(value, "score", None)) and hasattr(value, "allowed_values")


class _Reader:
    """Makes a metric's arguments from rows, and reads its results."""

    def __init__(self, metric: Any, entry: Entry) -> None:
        self._metric = metric
        self._signature = entry.signature

    def arguments(self, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments by name, only those that the function accepts."""
        row, parameters = args[0], self._signature
        if parameters is None or parameters.var_keyword is not None:
            return [], row
        known = {*parameters.positional, *parameters.keyword_only}
        return [], {name: value for name, value in row.items() if name in known}

    def plain(self, result: Any) -> Any:
        allowed = self._metric.allowed_values
        words = [str(one) for one in allowed] if isinstance(allowed, list) else None
        value = getattr(result, "value", result)
        reason = getattr(result, "reason", None)
        return {"name": self._metric.name, "value": value, "reason": reason, "allowed": words}
