"""Runs Galileo metrics (dialect `galileo`): `scorer_fn(step_object)`, and `aggregator_fn(scores)` for all rows' scores.

The scorer's annotation tells the class of the step; without an annotation, the step is a trace. The classes are those
of the package that the code has imported as `galileo`, or else those of the light modules in this folder.
"""

from __future__ import annotations

import os
import sys

from evaluator_runner import candidates, dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Outline

CONTRACT = "galileo"
WORDS = ("scorer_fn", "galileo")
PREBOUND = False
_ENTRY = "scorer_fn"
_AGGREGATOR = "aggregator_fn"
_STEP = "step_object"
_LOGGING = "galileo_core.schemas.logging"
_KINDS = {
    "Trace": "trace", "Session": "session", "LlmSpan": "span", "WorkflowSpan": "span", "AgentSpan": "span",
    "RetrieverSpan": "span", "ToolSpan": "span",
}  # fmt: skip
_BY_TYPE = {
    "trace": "Trace", "session": "Session", "llm": "LlmSpan", "workflow": "WorkflowSpan", "agent": "AgentSpan",
    "retriever": "RetrieverSpan", "tool": "ToolSpan",
}  # fmt: skip
_LIGHT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules")


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise the function `scorer_fn`, or an import of local metrics.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    if any(
        one.startswith("galileo") and one.endswith((".LocalMetric", ".LocalMetricConfig")) for one in outline.modules
    ):
        return dialects.DECORATED, "a local metric of galileo"
    found = outline.functions.get(_ENTRY)
    if found is None or name not in {None, _ENTRY} or (name is None and outline.has_own_entry):
        return None
    return dialects.NAMED, f"function `{_ENTRY}`"


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the scorer of the only local metric, or else `scorer_fn`.

    Raises:
      Failure: there is no scorer, or there are several.
    """
    metrics = {key: one for key, one in namespace.items() if type(one).__name__ in {"LocalMetric", "LocalMetricConfig"}}
    if name is None and metrics:
        name = candidates.the_only(namespace, sorted(metrics), "local metrics")
    chosen = metrics.get(name or "")
    if chosen is not None:
        found = entry.Entry(getattr(chosen.scorer_fn, "__name__", _ENTRY), chosen.scorer_fn)
        aggregator = chosen.aggregator_fn
    else:
        found = entry.find_function(namespace, name or _ENTRY)
        aggregator = namespace.get(_AGGREGATOR)
    found.together = entry.is_function(aggregator)
    found.call = _Scorer(found, aggregator).score
    return found


class _Scorer:
    """Calls the scorer with each row, and the aggregator with the scores of all rows."""

    def __init__(self, found: entry.Entry, aggregator: Any) -> None:
        self._scorer = found.call
        self._signature = found.signature
        self._aggregator = aggregator
        self._kind = _annotated(found.call)

    async def score(self, row: dict[str, Any] | None = None, *, together: list[list[Any]] | None = None) -> Any:
        """Return `{"score", "metadata"?}` for a row, or `{"aggregate"}` for the many rows in `together`."""
        if together is None:
            return await self._score(row or {})
        scores = [(await self._score(one[0]))["score"] for one in together]
        by_name = _names_of(self._aggregator) & {"scores"} or _names_of(self._aggregator) == set()
        value = self._aggregator(scores=scores) if by_name else self._aggregator(scores)
        return {"aggregate": await value if hasattr(type(value), "__await__") else value}

    async def _score(self, row: dict[str, Any]) -> dict[str, Any]:
        args, named = self._arguments(row)
        value = self._scorer(*args, **named)
        if hasattr(type(value), "__await__"):
            value = await value
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
            return {"score": value[0], "metadata": value[1]}
        return {"score": value}

    def _arguments(self, row: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        given = {"node_name": "", "node_type": "chat", "node_id": "", "tools": None, **_older(row.get(_STEP)), **row}
        given[_STEP] = _step(given.get(_STEP), self._kind)
        known = self._signature
        if known is None:
            return [given[_STEP]], {}
        names = {*known.positional, *known.keyword_only}
        args = []
        if known.positional and known.positional[0] not in given:
            args = [given[_STEP]]
        wanted = given if known.var_keyword is not None else {key: one for key, one in given.items() if key in names}
        return args, wanted


def _older(step: Any) -> dict[str, Any]:
    """Return the arguments for a scorer written for Galileo's older releases, which had no steps."""
    if not isinstance(step, dict):
        return {}
    input_, output = (_content(step.get(name)) for name in ("input", "output"))
    variables = {} if step.get("dataset_output") is None else {"target": step["dataset_output"]}
    return {"index": 0, "node_input": input_, "node_output": output, "response": output, "dataset_variables": variables}


def _content(value: Any) -> str:
    """Convert a value to text; for messages, return the content of the last message."""
    last = value[-1] if isinstance(value, list) and value else value
    return _text(last["content"] if isinstance(last, dict) and "content" in last else value)


def _names_of(function: Any) -> set[str]:
    found = entry.Entry("", function).signature
    return set() if found is None else {*found.positional, *found.keyword_only}


def _annotated(function: Any) -> str:
    """Return the name of the step class in the parameter's annotation; `Trace` if it contains none or several."""
    annotations = dict(getattr(function, "__annotations__", None) or {})
    annotations.pop("return", None)
    chosen = annotations.get(_STEP, next(iter(annotations.values()), ""))
    text = getattr(chosen, "__name__", None) or str(chosen)
    named = [kind for kind in _KINDS if kind in text]
    return named[0] if len(named) == 1 else "Trace"


def _step(fields: Any, kind: str) -> Any:
    """Make a step from a row's fields. Without a `type` among the fields, the step is of this `kind`."""
    if not isinstance(fields, dict):
        return fields
    fields = dict(fields)
    if "type" in fields:
        return _class(_BY_TYPE.get(fields["type"], "Trace"))(**fields)
    if isinstance(fields.get("dataset_output"), dict | list | int | float):
        fields["dataset_output"] = str(fields["dataset_output"])
    if kind == "LlmSpan":
        fields["input"] = _messages(fields.get("input"))
        fields["output"] = _text(fields.get("output"))
        return _class(kind)(**fields)
    plain = {**fields, "input": _text(fields.get("input")), "output": _text(fields.get("output"))}
    if kind == "Session":
        return _class(kind)(traces=[_step(fields, "Trace")], **plain)
    if kind == "RetrieverSpan":
        return _class(kind)(**{**plain, "output": fields.get("output") or []})
    spans = [] if kind == "ToolSpan" else [_step(fields, "LlmSpan")]
    return _class(kind)(spans=spans, **plain)


def _messages(value: Any) -> list[Any]:
    if isinstance(value, list) and all(isinstance(one, dict) and "role" in one for one in value):
        return value
    return [{"role": "user", "content": _text(value)}]


def _text(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return value or ""
    import json

    return json.dumps(value, ensure_ascii=False)


def _class(kind: str) -> Any:
    """Return the step class with this name from the package that the code has imported, or from the light modules."""
    name = f"{_LOGGING}.{_KINDS[kind]}"
    if name not in sys.modules:
        sys.path.insert(0, _LIGHT)
        try:
            __import__(name)
        finally:
            sys.path.remove(_LIGHT)
    return getattr(sys.modules[name], kind)
