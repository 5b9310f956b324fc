"""Runs Opik metrics (dialect `opik`): subclasses of `BaseMetric` whose `score` gets a trace's mapped fields by name.

This works with the package that the code has imported as `opik`: the runner's light modules, or the real package.
"""

from __future__ import annotations

import sys

from evaluator_runner import dialects, signature
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.candidates import note_others
from evaluator_runner.coerce import type_name
from evaluator_runner.entry import Entry, object_of
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "opik"
WORDS = ("opik",)
PREBOUND = False
IMPORTS = {
    "BaseMetric": "opik.evaluation.metrics:BaseMetric",
    "base_metric": "opik.evaluation.metrics:base_metric",
    "score_result": "opik.evaluation.metrics:score_result",
    "ScoreResult": "opik.evaluation.metrics.score_result:ScoreResult",
}
_PACKAGE = "opik.evaluation.metrics"
_BASES = ("BaseMetric", "ConversationThreadMetric")
_FIELDS = ("name", "value", "reason", "category_name", "metadata", "scoring_failed")
_NEVER_FILLED = "spans"
_THREAD = "trace_thread"
_modules = sys.modules


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a metric class of the package `opik`.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    found = outline.subclass_of("opik", *_BASES)
    if found is None or (name is not None and name not in outline.classes):
        return None
    return dialects.DECORATED, f"class `{name or found}`, a metric of opik"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that calls the metric `name`, or else the first metric in alphabetical order, as Opik does.

    Raises:
      Failure: the code defines no such class, or no metric.
    """
    kinds = _kinds(namespace)
    if not kinds or (name is not None and name not in kinds):
        what = f"`{name}` is not a metric" if name is not None else "the code defines no subclass of BaseMetric"
        raise Failure(
            "entry_not_found",
            f"{what}" + (f"; it defines {', '.join(sorted(kinds)[:10])}" if kinds else ""),
            hint="write `class MyMetric(base_metric.BaseMetric)`, with base_metric from opik.evaluation.metrics",
        )
    chosen = name or min(kinds)
    metric = object_of(namespace, chosen, config)
    entry = Entry(chosen, metric.score)
    reads = _Reader(metric, entry.signature)
    entry.call, entry.bind = reads.score, reads.arguments
    if name is None:
        note_others(entry, "first by name", sorted(kinds))
    return entry


def _kinds(namespace: dict[str, Any]) -> dict[str, Any]:
    base = getattr(_modules.get(f"{_PACKAGE}.base_metric"), "BaseMetric", None)
    if not isinstance(base, type):
        return {}
    own = {name: one for name, one in namespace.items() if isinstance(one, type) and issubclass(one, base)}
    return {name: one for name, one in own.items() if one.__module__ == "evaluator"}


class _Reader:
    """Calls one metric with rows, and reads the returned values."""

    def __init__(self, metric: Any, parameters: signature.Signature | None) -> None:
        self._metric = metric
        self._parameters = parameters
        thread = _modules.get(f"{_PACKAGE}.conversation.conversation_thread_metric")
        kind = getattr(thread, "ConversationThreadMetric", None)
        self._of_threads = isinstance(kind, type) and isinstance(metric, kind)

    def arguments(self, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Convert Opik's row `{"data": …, "type"?}` to the metric's arguments.

        A row that the host made also has `more`, with further values.
        """
        row = args[0]
        data, more = row.get("data"), row.get("more")
        if row.get("type") == _THREAD or isinstance(data, list) or (self._of_threads and more is not None):
            return [data if more is None else more.get("messages", [])], {}
        data = dict(data or {})
        if self._parameters is None:
            return [], data
        known = {*self._parameters.positional, *self._parameters.keyword_only}
        if more is not None:
            data.update({name: value for name, value in more.items() if name in known and name not in data})
            if self._parameters.var_keyword is None:
                data = {name: value for name, value in data.items() if name in known}
        required = self._parameters.positional[: self._parameters.required]
        required += [name for name, has_default in self._parameters.keyword_only.items() if not has_default]
        return [], {**dict.fromkeys([name for name in required if name != _NEVER_FILLED]), **data}

    def score(self, *args: Any, **kwargs: Any) -> Any:
        """Convert the scores to plain values; for a value without scores, return its type."""
        value = self._metric.score(*args, **kwargs)
        kind = _modules[f"{_PACKAGE}.score_result"].ScoreResult
        results = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, kind)]
        if not results:
            if hasattr(value, "close") and type(value).__name__ == "coroutine":
                value.close()
            return {"returned": type_name(type(value))}
        return {"scores": [{name: getattr(one, name, None) for name in _FIELDS} for one in results]}
